"""Cross-validation by group: every protein is tested once, by a model that was trained without its group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.folds import FoldAssignment, Folds, assign_folds, fold_datasets
from protgraph.errors import CheckpointError, DatasetError, OptionError
from protgraph.model.build import as_model_spec
from protgraph.model.spec import ModelSpec
from protgraph.task.metrics import compute_metrics
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task
from protgraph.train.bootstrap import bootstrap_difference, bootstrap_scores, count_split, percentile_interval
from protgraph.train.checkpoint import Checkpoint, load_checkpoint
from protgraph.train.config import FitConfig
from protgraph.train.cross_validation_result import CrossValidation, FoldResult
from protgraph.train.evaluate import BatchPredictions, join_predictions, predict_split
from protgraph.train.fit import fit
from protgraph.train.fold_table import FoldTest, tabulate_folds
from protgraph.train.label_check import RANKING
from protgraph.train.prepare import Prepared, prepare
from protgraph.train.resolve import load_dataset, resolve_task
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger
    from torch_geometric.data import Data

__all__ = ["cross_validate"]

CHECKPOINT = "model.safetensors"
_BASELINE = "majority"


def cross_validate(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: str | Path | Dataset | Sequence[Data],
    task: str | Task,
    *,
    folds: Folds = 5,
    config: FitConfig | None = None,
    cache: str | Path | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    on_fold: Callable[[FoldResult], None] | None = None,
    make_loggers: Callable[[Path], Sequence[Logger]] | None = None,
    **options: Any,
) -> CrossValidation:
    """Train and test a model on each fold; proteins of one group are never in two folds.

    Each fold has a validation part of its own, drawn from the other folds: standardization, weights of positives, best
    epoch and thresholds do not depend on the tested proteins. The splits of the dataset are ignored. The baseline
    ``majority`` is tested on the same folds, unless the task has no score of a constant prediction.

    Parameters
    ----------
    model, dataset, task, config, cache
        See :func:`protgraph.train.fit`.
    folds : int or "leave-one-group-out"
        Number of folds with balanced labels, or one fold for each group of proteins with a common sequence or cluster.
    run_dir : str or Path, optional
        Folder of the models of the folds, ``fold_1/model.safetensors`` and so on, and of training states.
    resume : bool
        Use the finished folds in ``run_dir``, and continue the unfinished one.
    on_fold : callable, optional
        Called with each tested fold.
    make_loggers : callable, optional
        Lightning loggers of a fold, from its folder in ``run_dir``.
    **options
        Further options of :func:`protgraph.train.fit`, e.g. ``jobs``, ``workers`` and ``on_epoch``.

    Raises
    ------
    OptionError
        ``folds`` is invalid, or ``resume`` is given without ``run_dir``.
    DatasetError
        There are too few independent groups, or the metric is undefined in the validation part of a fold.
    CheckpointError
        ``run_dir`` has the folds of another run.
    """
    config, spec = config or FitConfig(), as_model_spec(model)
    if resume and run_dir is None:
        raise OptionError("cross_validate: resume=True needs run_dir, the folder of the interrupted run.")
    dataset = load_dataset(dataset, task=task, cache=cache)
    task = resolve_task(task, dataset)
    assignment = assign_folds(dataset, task.name, folds, seed=config.seed)
    numbers = {example.id: i for i, example in enumerate(dataset.examples(task.name))}
    run = _Run(
        spec, task, config, None if run_dir is None else Path(run_dir), resume, cache, numbers, make_loggers, options
    )
    parts = fold_datasets(dataset, task.name, assignment, seed=config.seed)
    _check_validation(parts, assignment, task)
    tests: list[FoldTest] = []
    floors: list[SplitPredictions] = []
    results, prepared = [], None
    for k, part in enumerate(parts, 1):
        checkpoint, is_resumed = run.train(part, k)
        test, prepared = run.test(checkpoint, part)
        tests.append((test, prepared.splits["test"]))
        metrics, floor = compute_metrics(task.metrics, test), dict.fromkeys((m.name for m in task.metrics), math.nan)
        if _has_baseline(task):
            floors.append(run.test(run.baseline(part), part)[0])
            floor = compute_metrics(task.metrics, floors[-1])
        epoch = checkpoint.trained["best_epoch"]
        results.append(FoldResult(k, count_split(test), metrics, floor, epoch, is_resumed=is_resumed))
        if on_fold is not None:
            on_fold(results[-1])
    pooled = _pool([test for test, _ in tests])
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    difference = np.array([math.nan])
    if floors:
        floor = compute_metrics(task.metrics, _pool(floors))
        difference = bootstrap_difference(pooled, _pool(floors), monitor)
    return CrossValidation(
        model=spec.name,
        dataset=dataset.name,
        task=task,
        rule=assignment.rule,
        folds=tuple(results),
        pooled=compute_metrics(task.metrics, pooled),
        baseline=floor,
        intervals={metric.name: percentile_interval(bootstrap_scores(pooled, metric)) for metric in task.metrics},
        difference=percentile_interval(difference),
        size=count_split(pooled),
        predictions=tabulate_folds(dataset, task.name, task.target, tests),
        failures=prepared.failures,
        notes=prepared.notes,
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """Training and tests of all folds with the same arguments."""

    spec: ModelSpec
    task: Task
    config: FitConfig
    run_dir: Path | None
    resume: bool
    cache: str | Path | None
    numbers: Mapping[str, int]
    make_loggers: Callable[[Path], Sequence[Logger]] | None
    options: Mapping[str, Any]

    def train(self, part: Dataset, fold: int) -> tuple[Checkpoint, bool]:
        """Train on a fold; return the checkpoint, and True if it is of an earlier run."""
        folder = None if self.run_dir is None else self.run_dir / f"fold_{fold}"
        path = None if folder is None else folder / CHECKPOINT
        if path is not None and self.resume and path.is_file():
            return self._finished(path, part), True
        common = {"config": self.config, "cache": self.cache, "run_dir": folder, "resume": self.resume}
        if self.make_loggers is not None and folder is not None:
            common["logger"] = self.make_loggers(folder)
        result = fit(self.spec, part, self.task, **common, **self.options)
        if path is not None and folder is not None:
            result.save(path)
            from protgraph.train.run_folder import RunFolder  # imports Lightning, as only training does

            RunFolder(folder).remove_state()
        return result.checkpoint(), False

    def baseline(self, part: Dataset) -> Checkpoint:
        """Return the trained baseline of a fold."""
        config = replace(self.config, epochs=1, pos_weight=None, class_weight=None, noise=0.0)
        return fit(_BASELINE, part, self.task, config=config, cache=self.cache).checkpoint()

    def test(self, checkpoint: Checkpoint, part: Dataset) -> tuple[SplitPredictions, Prepared]:
        """Predict the test fold; ``protein`` is the number of the example in the dataset."""
        network = checkpoint.model
        task = self.task if network.decoder is None else self.task.for_decoder()
        prepared = prepare(part, task, network.plan, cache=self.cache)
        store = prepared.splits["test"]
        predictions = predict_split(network.to(self.config.torch_device()), store, task)
        network.cpu()
        protein = torch.tensor([self.numbers[name] for name in store.names])[predictions.protein]
        return replace(predictions, protein=protein, threshold=checkpoint.threshold), prepared

    def _finished(self, path: Path, part: Dataset) -> Checkpoint:
        """Return the model of a finished fold of an interrupted run."""
        checkpoint, config = load_checkpoint(path), self.config.to_dict()
        expected = {"model": self.spec.to_dict(), "data": part.version, "config": config}
        trained = checkpoint.trained
        found = {
            "model": checkpoint.model.spec.to_dict(),
            "data": trained["dataset_version"],
            "config": trained["config"],
        }
        changed = [key for key, value in expected.items() if value != found[key]]
        if changed:
            raise CheckpointError(
                f"Cannot resume from {path}: the interrupted run had another {' and '.join(changed)}. Use the same "
                "arguments and files, or start again without resume."
            )
        return checkpoint


def _has_baseline(task: Task) -> bool:
    """Return False if a constant prediction has no score: correlations, vectors and coordinates."""
    return not task.target.is_geometric and not task.monitor.startswith("pearson")


def _check_validation(parts: Sequence[Dataset], assignment: FoldAssignment, task: Task) -> None:
    """Raise before training if the metric that selects the epoch would be undefined in a fold."""
    if task.target.kind != "multilabel" or task.monitor not in RANKING or not assignment.counts.shape[1]:
        return
    for fold, part in enumerate(parts, 1):
        is_val = np.array([example.split == "val" for example in part.examples(task.name)])
        negative, positive = assignment.counts[is_val].sum(0).reshape(2, -1)
        if not ((negative > 0) & (positive > 0)).any():
            found = (
                f"{count_noun(int(is_val.sum()), 'protein')} with {count_noun(int(positive.sum()), 'positive label')}"
            )
            raise DatasetError(
                f"task {task.name!r}: {task.monitor} is undefined on the validation part of fold {fold} of "
                f"{len(parts)}: {found} and {int(negative.sum())} negative. It needs both. Use another seed or number "
                "of folds, or add proteins."
            )


def _pool(parts: Sequence[SplitPredictions]) -> SplitPredictions:
    """Concatenate the predictions of folds; each row keeps the threshold of its fold."""
    joined = join_predictions([BatchPredictions(part, len(part.protein.unique())) for part in parts])
    threshold = None
    if parts[0].threshold is not None:
        threshold = torch.cat([part.threshold.expand_as(part.y) for part in parts])
    return replace(joined, threshold=threshold, protein=torch.cat([part.protein for part in parts]))
