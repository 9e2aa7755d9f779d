"""Run a recipe: train the members, calibrate and evaluate their mean, write the folder of a trained model."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from protgraph_plugins.recipes.card import (
    card_page,
    comparisons_of,
    find_calls,
    split_result,
    write_reliability_figure,
)
from protgraph_plugins.recipes.recipe import Recipe

import protgraph
from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.checkpoint import (
    CARD,
    RECIPE,
    WEIGHTS,
    Checkpoint,
    ModelCard,
    SplitResult,
    TrainedModel,
    components_of,
    load_checkpoint,
    load_parent,
    round_to_half,
    save_checkpoint,
    summarize_training_set,
)
from protgraph.data import GraphStore
from protgraph.data.datasets import Dataset, assign_folds, fold_datasets, held_out, resplit
from protgraph.errors import OutputFileError
from protgraph.evaluation import (
    BatchPredictions,
    CalibrationMap,
    check_calibration_method,
    fit_calibration,
    join_predictions,
    predict_ensemble,
)
from protgraph.file_io import atomic_write, write_text_file
from protgraph.inference import with_stored_predictions
from protgraph.labels import Prepared, add_evaluations, prepare, resolve_task
from protgraph.model import ProteinModel, as_model_spec
from protgraph.task import SplitPredictions, Task, best_threshold
from protgraph.train import FitConfig, fit

__all__ = ["evaluate_recipe", "run_recipe"]
ENTRY_POINTS = {"protgraph.functions": {"run_recipe": "run_recipe"}}


@check_arguments("recipe", "out", "cache", "jobs")
def run_recipe(
    recipe: str | Path,
    out: str | Path,
    *,
    cache: str | Path | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    on_member: Callable[[str, Checkpoint], None] | None = None,
) -> TrainedModel:
    """Train all members of a recipe, and write weights, recipe, card, page and reliability figure.

    Thresholds are chosen on the validation split, and the calibration is fitted there, or by cross-fitting
    (``calibration_folds``). Every other split is evaluated once.

    Parameters
    ----------
    recipe : str or Path
        TOML file of a :class:`Recipe`. It is copied into the folder.
    out : str or Path
        Folder to write. It appears when all of it is written. Until then trained members and the training state of the
        next one are in ``OUT.members``: an interrupted run continues from the last state, which is written every ten
        minutes and after epochs.
    cache, jobs
        See :func:`protgraph.train.fit`.
    overwrite : bool
        Replace an existing folder.
    on_member : callable, optional
        Called with the name and the checkpoint of each trained member.

    Returns
    -------
    TrainedModel
        ``.checkpoint()`` predicts, ``.card()`` has the results.

    Raises
    ------
    OptionError, DatasetError
        The recipe does not fit the dataset or the task.
    """
    path, spec = Path(recipe), Recipe.from_toml(recipe)
    _check_folder(out, overwrite=overwrite)
    data = _RecipeData.load(spec, cache=cache)
    folder_of_members = _folder_of_members(out)
    members = _train(spec, data.dataset, folder_of_members, cache, jobs, on_member)
    first, *further = members.values()
    task = data.task_of(first.model)
    prepared = prepare(data.dataset, task, first.model.plan, cache=cache, jobs=jobs)
    stores = prepared.splits
    predictions = _predict([first.model, *(member.model for member in further)], stores, task)
    calibration = _fit_calibration(spec, data, task, predictions["val"], folder_of_members, cache, jobs)
    checkpoint = _checkpoint(spec, [first, *further], task, stores, predictions["val"], calibration)
    results = _results(prepared, _with_metrics(task, spec), predictions, checkpoint)
    card = _card(spec, data, list(members), predictions, checkpoint, results)
    with atomic_write(Path(out), folder=True, overwrite=overwrite) as folder:
        save_checkpoint(folder / WEIGHTS, with_stored_predictions(checkpoint))
        _write_report(folder, path, card, predictions, checkpoint)
    shutil.rmtree(folder_of_members)
    return TrainedModel(Path(out))


@check_arguments("out", "cache", "jobs")
def evaluate_recipe(
    trained: TrainedModel,
    out: str | Path,
    *,
    cache: str | Path | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    recalibrate: bool = False,
) -> TrainedModel:
    """Evaluate the weights of a trained model again, and write its folder with a new card.

    Weights and thresholds stay as they are. Calls come from the predictions of validation, floors and rivals from the
    cards of the datasets.

    Parameters
    ----------
    trained : TrainedModel
        Folder of :func:`run_recipe`.
    out, cache, jobs, overwrite
        See :func:`run_recipe`.
    recalibrate : bool
        Fit the calibration of the recipe again. For cross-fitting, members are trained once for each fold; an
        interrupted run continues from ``OUT.members``. By default nothing is trained, and the calibration stays.

    Raises
    ------
    OptionError, DatasetError, CheckpointError
        The recipe does not fit the dataset or the task, or a file of the folder is missing.
    """
    spec, before, checkpoint = Recipe.from_toml(trained.recipe), trained.card(), trained.checkpoint()
    _check_folder(out, overwrite=overwrite)
    data = _RecipeData.load(spec, cache=cache)
    task = data.task_of(checkpoint.model)
    held = held_out(data.dataset, task.name)
    prepared = prepare(held, task, checkpoint.model.plan, cache=cache, jobs=jobs, needs_train=False)
    predictions = _predict(checkpoint.members, prepared.splits, task)
    folder_of_members = _folder_of_members(out)
    if recalibrate:
        calibration = _fit_calibration(spec, data, task, predictions["val"], folder_of_members, cache, jobs)
        checkpoint = replace(checkpoint, calibration=calibration)
    results = _results(prepared, _with_metrics(task, spec), predictions, checkpoint)
    card = _card(spec, data, before.members, predictions, checkpoint, results)
    card = card.model_copy(update={"versions": before.versions, "seconds": before.seconds})  # those of training
    with atomic_write(Path(out), folder=True, overwrite=overwrite) as folder:
        if recalibrate:
            save_checkpoint(folder / WEIGHTS, with_stored_predictions(checkpoint))
        else:
            shutil.copyfile(trained.folder / WEIGHTS, folder / WEIGHTS)
        _write_report(folder, trained.recipe, card, predictions, checkpoint)
    if recalibrate:
        shutil.rmtree(folder_of_members, ignore_errors=True)  # it is absent without cross-fitting
    return TrainedModel(Path(out))


@dataclass(frozen=True)
class _RecipeData:
    """Data of a recipe with those that it is evaluated on.

    ``left_out`` describes proteins that are not used, because an evaluated dataset has homologs of them.
    """

    name_of_task: str
    dataset: Dataset
    left_out: str

    @classmethod
    def load(cls, recipe: Recipe, *, cache: str | Path | None) -> _RecipeData:
        """Load the datasets of a recipe."""
        evaluations = [evaluation.load() for evaluation in recipe.evaluate]
        return cls(recipe.task, *add_evaluations(recipe.data(), recipe.task, evaluations, cache=cache))

    def task_of(self, model: ProteinModel) -> Task:
        """Return the task for a model."""
        task = resolve_task(self.name_of_task, self.dataset)
        return task if model.decoder is None else task.for_decoder()


def _fit_calibration(
    recipe: Recipe,
    data: _RecipeData,
    task: Task,
    validation: SplitPredictions,
    folder_of_members: Path,
    cache: str | Path | None,
    jobs: int,
) -> CalibrationMap | None:
    """Fit the calibration on validation, or by cross-fitting; None if the recipe has none."""
    if recipe.calibration == "none":
        return None
    rows, fitted_on = validation, "val"
    if recipe.calibration_folds:
        rows = _cross_fit(recipe, data.dataset, task, folder_of_members, cache, jobs)
        fitted_on = f"train and val, cross-fitted in {recipe.calibration_folds} folds"
    return fit_calibration(recipe.calibration, rows, task.target, split=fitted_on)


def _check_folder(out: str | Path, *, overwrite: bool) -> None:
    if not overwrite and Path(out).is_dir() and any(Path(out).iterdir()):
        raise OutputFileError(f"folder not written: {str(out)!r} has files. Give another folder, or overwrite=True.")


def _folder_of_members(out: str | Path) -> Path:
    """Return the folder of the members and states of an interrupted run."""
    return Path(out).with_name(f"{Path(out).name}.members")


def _predict(
    models: Sequence[ProteinModel], stores: Mapping[str, GraphStore], task: Task
) -> dict[str, SplitPredictions]:
    """Return the mean predictions of models for validation and each test split."""
    return predict_ensemble(models, {split: store for split, store in stores.items() if split != "train"}, task)


def _write_report(
    folder: Path,
    recipe: Path,
    card: ModelCard,
    predictions: Mapping[str, SplitPredictions],
    checkpoint: Checkpoint,
) -> None:
    """Write recipe, card, page and reliability diagram beside the weights."""
    target, calibration = checkpoint.model.target, checkpoint.calibration
    write_text_file(folder / RECIPE, recipe.read_text(encoding="utf-8"))
    write_text_file(folder / CARD, card.model_dump_json(indent=1) + "\n")
    write_text_file(folder / "README.md", card_page(card))
    if calibration is not None and target.kind != "regression":
        write_reliability_figure(folder / "reliability.svg", predictions, calibration, target)


def _train(
    recipe: Recipe,
    dataset: Dataset,
    folder: Path,
    cache: str | Path | None,
    jobs: int,
    on_member: Callable[[str, Checkpoint], None] | None,
) -> dict[str, Checkpoint]:
    """Return each member by its model and seed; members of an interrupted run are read from ``folder``."""
    if recipe.calibration != "none":
        check_calibration_method(recipe.calibration, resolve_task(recipe.task, dataset).target)
    members: dict[str, Checkpoint] = {}
    for number, model in enumerate(recipe.models):
        for seed in recipe.seeds:
            file, config = folder / f"{number}-{seed}.safetensors", recipe.config(seed)
            member = load_checkpoint(file, check_code=False) if file.is_file() else None
            if member is None or not _is_result_of(member, model, dataset, config):
                run_dir = folder / f"{number}-{seed}-{_digest(model, dataset, config)}.run"
                member = fit(
                    model, dataset, recipe.task, config=config, cache=cache, jobs=jobs, run_dir=run_dir, resume=True
                ).checkpoint()
                if recipe.float16:
                    round_to_half(member.model)
                save_checkpoint(file, member)
                shutil.rmtree(run_dir)
            label = f"{member.model.spec.name} seed {seed}"
            label = f"{label} ({number})" if label in members else label
            members[label] = member
            if on_member is not None:
                on_member(label, member)
    return members


def _cross_fit(
    recipe: Recipe, dataset: Dataset, task: Task, folder: Path, cache: str | Path | None, jobs: int
) -> SplitPredictions:
    """Return predictions of the proteins of train and val, each by members trained without its cluster."""
    recipe = recipe.model_copy(update={"seeds": recipe.calibration_seeds or recipe.seeds})
    splits = {e.id: e.split for e in dataset.examples(task.name) if e.split in ("train", "val")}
    used = resplit(dataset, task.name, splits, "train and val")
    assignment = assign_folds(used, task.name, recipe.calibration_folds)
    predictions_of_folds = []
    for k, fold in enumerate(fold_datasets(used, task.name, assignment), 1):
        members = list(_train(recipe, fold, folder / f"fold{k}", cache, jobs, None).values())
        store = prepare(fold, task, members[0].model.plan, cache=cache, jobs=jobs).splits["test"]
        rows = predict_ensemble([member.model for member in members], {"test": store}, task)["test"]
        predictions_of_folds.append(BatchPredictions(rows, len(store)))
    return join_predictions(predictions_of_folds)


def _digest(model: str | Mapping[str, Any], dataset: Dataset, config: FitConfig) -> str:
    """Return a name for the run of a member, which differs for other data or options; it may be trained longer."""
    options = {name: value for name, value in config.to_dict().items() if name not in ("epochs", "patience")}
    described = (as_model_spec(model).to_dict(), dataset.name, dataset.version, options)
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _is_result_of(member: Checkpoint, model: str | Mapping[str, Any], dataset: Dataset, config: FitConfig) -> bool:
    """Return True if a checkpoint is of this model, dataset and these options, and of the installed code."""
    trained, installed = member.trained, components_of(member.model, member.task)
    if {(c.kind, c.name, c.digest) for c in member.components} != {(c.kind, c.name, c.digest) for c in installed}:
        return False
    digest = None if config.start_from is None else load_parent(config.start_from).digest
    if trained.get("start", {}).get("digest") != digest:
        return False
    data = (trained["dataset"], trained["dataset_version"]) == (dataset.name, dataset.version)
    return data and trained["config"] == config.to_dict() and member.model.spec == as_model_spec(model)


def _with_metrics(task: Task, recipe: Recipe) -> Task:
    names = [metric.name for metric in task.metrics]
    return replace(
        task, metrics=(*task.metrics, *(registry.metrics.get(name) for name in recipe.metrics if name not in names))
    )


def _checkpoint(
    recipe: Recipe,
    members: list[Checkpoint],
    task: Task,
    stores: Mapping[str, GraphStore],
    validation: SplitPredictions,
    calibration: CalibrationMap | None,
) -> Checkpoint:
    """Return the checkpoint of all members, with the thresholds of their mean."""
    first, *other_members = members
    training_set = summarize_training_set(first.model, task, stores)
    if training_set is not None and recipe.float16:
        training_set = replace(training_set, descriptors=training_set.descriptors.half().float())
    threshold = best_threshold(validation) if first.threshold is not None else None
    seeds = {"seeds": list(recipe.seeds), "recipe": recipe.name}
    return replace(
        first,
        others=tuple(member.model for member in other_members),
        calibration=calibration,
        threshold=threshold,
        training_set=training_set,
        metrics={},
        trained=dict(first.trained) | seeds,
    )


def _results(
    prepared: Prepared,
    task: Task,
    predictions: Mapping[str, SplitPredictions],
    checkpoint: Checkpoint,
) -> dict[str, SplitResult]:
    """Return the results of each evaluated split, with intervals over the clusters of its proteins."""
    results: dict[str, SplitResult] = {}
    for split, rows in predictions.items():
        clusters = prepared.data.clusters(prepared.splits[split].names)
        results[split] = split_result(task, rows, checkpoint, clusters)
    return results


def _card(
    recipe: Recipe,
    data: _RecipeData,
    members: list[str],
    predictions: Mapping[str, SplitPredictions],
    checkpoint: Checkpoint,
    results: dict[str, SplitResult],
) -> ModelCard:
    """Describe the data, the members and their results on validation and on each test split, beside other methods."""
    card, calibration = data.dataset.card, checkpoint.calibration
    license_ = card.license or "unknown license"
    libraries = {name: version(name) for name in ("torch", "torch_geometric", "biotite")}
    return ModelCard(
        name=recipe.name,
        summary=recipe.summary,
        task=recipe.task,
        dataset=Path(recipe.dataset).name,
        dataset_version=card.version,
        license=license_,
        non_commercial=recipe.non_commercial or "NC" in license_.upper().replace("-", " ").split(),
        weights_note=card.provenance.weights_note,
        left_out=data.left_out,
        citation=card.citation,
        reads=checkpoint.reads,
        input=recipe.input,
        limits=list(recipe.limits),
        members=members,
        parameters=sum(member.num_parameters for member in checkpoint.members),
        calibration="none" if calibration is None else str(calibration),
        splits=results,
        versions={"protgraph": protgraph.__version__} | libraries,
        calls=find_calls(checkpoint, predictions, recipe.truth),
        comparisons=comparisons_of(results, recipe.task_cards()),
    )
