"""Cross-validate: train and test on each fold, and pool the predictions of all test folds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from protgraph.checkpoint.checkpoint_file import Checkpoint, load_checkpoint, load_parent
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.folds import FoldAssignment, Folds, assign_folds, fold_datasets
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import residue_nodes
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import CheckpointError, DatasetError, OptionError
from protgraph.evaluation.bootstrap import (
    BootstrapInterval,
    SplitSize,
    bootstrap_difference,
    bootstrap_scores,
    count_split,
    percentile_interval,
)
from protgraph.evaluation.evaluation import BatchPredictions, join_predictions, predict_split
from protgraph.failure import Failure
from protgraph.inference.prediction import PROTEIN, RESIDUE, prediction_values
from protgraph.inference.prediction_table import Predictions, prediction_columns, target_names
from protgraph.inference.result_table import residue_keys
from protgraph.labels.checks import RANKING
from protgraph.labels.loading import load_dataset, resolve_task
from protgraph.labels.preparation import Prepared, prepare
from protgraph.model.build import as_model_spec
from protgraph.model.spec import ModelSpec
from protgraph.structure.residues.residues import Residues
from protgraph.task.metrics import compute_metrics
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.training import fit
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger
    from torch_geometric.data import Data

__all__ = ["CrossValidation", "FoldResult", "FoldTest", "cross_validate", "tabulate_folds"]

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
    config = config or FitConfig()
    spec = as_model_spec(model)
    if resume and run_dir is None:
        raise OptionError("cross_validate: resume=True needs run_dir, the folder of the interrupted run.")
    dataset = load_dataset(dataset, task=task, cache=cache)
    task = resolve_task(task, dataset)
    assignment = assign_folds(dataset, task.name, folds, seed=config.seed)
    datasets_of_folds = fold_datasets(dataset, task.name, assignment, seed=config.seed)
    _check_validation(datasets_of_folds, assignment, task)

    # train and test each fold
    run = _Run(
        spec=spec,
        task=task,
        config=config,
        run_dir=None if run_dir is None else Path(run_dir),
        resume=resume,
        cache=cache,
        numbers={example.id: i for i, example in enumerate(dataset.examples(task.name))},
        make_loggers=make_loggers,
        options=options,
    )
    tested: list[_TestedFold] = []
    for number, fold in enumerate(datasets_of_folds, 1):
        tested.append(run.tested(fold, number))
        if on_fold is not None:
            on_fold(tested[-1].result)

    return _together(tested, spec.name, dataset, task, assignment.rule)


def _together(tested: Sequence[_TestedFold], model: str, dataset: Dataset, task: Task, rule: str) -> CrossValidation:
    """Pool the predictions of all test folds."""
    pooled = _pool([fold.predictions for fold in tested])
    floors = [fold.floor for fold in tested if fold.floor is not None]
    pooled_floor = _pool(floors) if floors else None
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    difference = np.array([math.nan])
    if pooled_floor is not None:
        difference = bootstrap_difference(pooled, pooled_floor, monitor)
    tests = [(fold.predictions, fold.prepared.splits["test"]) for fold in tested]
    return CrossValidation(
        model=model,
        dataset=dataset.name,
        task=task,
        rule=rule,
        folds=tuple(fold.result for fold in tested),
        pooled=compute_metrics(task.metrics, pooled),
        baseline=_metrics_of_floor(task, pooled_floor),
        intervals={metric.name: percentile_interval(bootstrap_scores(pooled, metric)) for metric in task.metrics},
        difference=percentile_interval(difference),
        size=count_split(pooled),
        predictions=tabulate_folds(dataset, task.name, task.target, tests),
        failures=tested[-1].prepared.failures,
        notes=tested[-1].prepared.notes,
    )


class _TestedFold(NamedTuple):
    """Test of a fold: its result, predictions of the model and of the baseline, and graphs."""

    result: FoldResult
    predictions: SplitPredictions
    floor: SplitPredictions | None
    prepared: Prepared


def _metrics_of_floor(task: Task, floor: SplitPredictions | None) -> dict[str, float]:
    """Return the metrics of the baseline, NaN if the task has none."""
    if floor is None:
        return dict.fromkeys((metric.name for metric in task.metrics), math.nan)
    return compute_metrics(task.metrics, floor)


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

    def tested(self, dataset: Dataset, fold: int) -> _TestedFold:
        """Train and test the model and the baseline on a fold."""
        checkpoint, is_resumed = self.train(dataset, fold)
        predictions, prepared = self.test(checkpoint, dataset)
        floor = None
        if _has_baseline(self.task):
            floor, _ = self.test(self.baseline(dataset), dataset)
        result = FoldResult(
            fold,
            count_split(predictions),
            metrics=compute_metrics(self.task.metrics, predictions),
            baseline=_metrics_of_floor(self.task, floor),
            best_epoch=checkpoint.trained["best_epoch"],
            is_resumed=is_resumed,
        )
        return _TestedFold(result, predictions, floor, prepared)

    def train(self, dataset: Dataset, fold: int) -> tuple[Checkpoint, bool]:
        """Train on a fold; return the checkpoint, and True if it is of an earlier run."""
        folder = None if self.run_dir is None else self.run_dir / f"fold_{fold}"
        path = None if folder is None else folder / CHECKPOINT
        if path is not None and self.resume and path.is_file():
            return self._finished(path, dataset), True
        options = dict(self.options)
        if self.make_loggers is not None and folder is not None:
            options["logger"] = self.make_loggers(folder)
        result = fit(
            self.spec,
            dataset,
            self.task,
            config=self.config,
            cache=self.cache,
            run_dir=folder,
            resume=self.resume,
            **options,
        )
        if path is not None and folder is not None:
            result.save(path)
            from protgraph.train.run_folder import RunFolder  # imports Lightning, as only training does

            RunFolder(folder).remove_state()
        return result.checkpoint(), False

    def baseline(self, dataset: Dataset) -> Checkpoint:
        """Return the trained baseline of a fold."""
        run = self.config
        config = FitConfig(epochs=1, batch_residues=run.batch_residues, device=run.device, seed=run.seed)
        return fit(_BASELINE, dataset, self.task, config=config, cache=self.cache).checkpoint()

    def test(self, checkpoint: Checkpoint, dataset: Dataset) -> tuple[SplitPredictions, Prepared]:
        """Predict the test fold; ``protein`` is the number of the example in the dataset."""
        network = checkpoint.model
        task = self.task if network.decoder is None else self.task.for_decoder()
        prepared = prepare(dataset, task, network.plan, cache=self.cache)
        store = prepared.splits["test"]
        predictions = predict_split(network.to(self.config.torch_device()), store, task)
        network.cpu()
        protein = torch.tensor([self.numbers[name] for name in store.names])[predictions.protein]
        return replace(predictions, protein=protein, threshold=checkpoint.threshold), prepared

    def _finished(self, path: Path, dataset: Dataset) -> Checkpoint:
        """Return the model of a finished fold of an interrupted run."""
        checkpoint = load_checkpoint(path)
        expected = {
            "model": self.spec.to_dict(),
            "data": dataset.version,
            "config": self.config.to_dict(),
            "parent": None,
        }
        if self.config.start_from is not None:
            expected["parent"] = load_parent(self.config.start_from).digest
        trained = checkpoint.trained
        recorded = {
            "model": checkpoint.model.spec.to_dict(),
            "data": trained["dataset_version"],
            "config": trained["config"],
            "parent": trained.get("start", {}).get("digest"),
        }
        changed = [key for key, value in expected.items() if value != recorded[key]]
        if changed:
            raise CheckpointError(
                f"Cannot resume from {path}: the interrupted run had another {' and '.join(changed)}. Use the same "
                "arguments and files, or start again without resume."
            )
        return checkpoint


def _has_baseline(task: Task) -> bool:
    """Return False if a constant prediction has no score: correlations, vectors and coordinates."""
    return not task.target.is_geometric and not task.monitor.startswith("pearson")


def _check_validation(datasets: Sequence[Dataset], assignment: FoldAssignment, task: Task) -> None:
    """Raise before training if the metric that selects the epoch would be undefined in a fold."""
    if task.target.kind != "multilabel" or task.monitor not in RANKING or not assignment.counts.shape[1]:
        return
    for fold, dataset in enumerate(datasets, 1):
        is_val = np.array([example.split == "val" for example in dataset.examples(task.name)])
        negative, positive = assignment.counts[is_val].sum(0).reshape(2, -1)
        has_both = (negative > 0) & (positive > 0)
        if not has_both.any():
            proteins = count_noun(int(is_val.sum()), "protein")
            positives = count_noun(int(positive.sum()), "positive label")
            summary = f"{proteins} with {positives}"
            raise DatasetError(
                f"task {task.name!r}: {task.monitor} is undefined on the validation part of fold {fold} of "
                f"{len(datasets)}: {summary} and {int(negative.sum())} negative. It needs both. Use another seed or "
                "number of folds, or add proteins."
            )


def _pool(folds: Sequence[SplitPredictions]) -> SplitPredictions:
    """Concatenate the predictions of folds; each row keeps the threshold of its fold."""
    batches = []
    thresholds = []
    for fold in folds:
        batches.append(BatchPredictions(fold, len(fold.protein_of_rows.unique())))
        if fold.threshold is not None:
            thresholds.append(fold.threshold.expand_as(fold.y))
    joined = join_predictions(batches)
    threshold = torch.cat(thresholds) if thresholds else None
    protein = torch.cat([fold.protein_of_rows for fold in folds])
    return replace(joined, threshold=threshold, protein=protein)


_LABEL = 18  # characters of the first column


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Test of one fold.

    Parameters
    ----------
    fold : int
        From 1.
    size : SplitSize
        Proteins of the test fold with a known label.
    metrics, baseline : mapping of str to float
        Of the model and of the baseline, on the test fold.
    is_resumed : bool
        True if the model is from an earlier, interrupted run.
    """

    fold: int
    size: SplitSize
    metrics: Mapping[str, float]
    baseline: Mapping[str, float]
    best_epoch: int
    is_resumed: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Result of :func:`protgraph.train.cross_validate`.

    Parameters
    ----------
    rule : str
        How proteins were assigned to folds.
    pooled, baseline : mapping of str to float
        Metrics of the predictions of all test folds together, of the model and of the baseline.
    intervals : mapping of str to BootstrapInterval
        95 % interval of each pooled metric over resampled proteins.
    difference : BootstrapInterval
        95 % interval of the pooled monitored metric minus that of the baseline, on the same samples of proteins.
    size : SplitSize
        Tested proteins.
    predictions : Predictions
        Prediction of each residue or protein by the model that was trained without its group, with its fold and label.
        Without rows for pairs and edges.
    failures : tuple of Failure
        Proteins that could not be used.
    notes : tuple of str
        Messages for the user.
    """

    model: str
    dataset: str
    task: Task
    rule: str
    folds: tuple[FoldResult, ...]
    pooled: Mapping[str, float]
    baseline: Mapping[str, float]
    intervals: Mapping[str, BootstrapInterval]
    difference: BootstrapInterval
    size: SplitSize
    predictions: Predictions = field(repr=False)
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    def mean(self, metric: str) -> tuple[float, float]:
        """Return the mean of a metric over the folds where it is defined, and its standard deviation (n − 1)."""
        values = []
        for fold in self.folds:
            if not math.isnan(fold.metrics[metric]):
                values.append(fold.metrics[metric])
        mean = fmean(values) if values else math.nan
        deviation = stdev(values) if len(values) > 1 else math.nan
        return mean, deviation

    @property
    def beats_baseline(self) -> bool:
        """True if the interval of the difference from the baseline is on the better side of 0."""
        modes = {metric.name: metric.mode for metric in self.task.metrics}
        if modes[self.task.monitor] == "max":
            return self.difference.low > 0
        return self.difference.high < 0

    def __repr__(self) -> str:
        monitor = self.task.monitor
        score = f"{monitor} {_number(self.pooled[monitor])} ({self.intervals[monitor].text()})"
        return f"CrossValidation({self.model!r}, {self.task.name!r}, {len(self.folds)} folds, {score})"

    def summary(self) -> str:
        """Return lines of text: a row per fold, mean and standard deviation, pooled metrics, intervals, baseline.

        The number of proteins with positives is a column only if the labels are yes/no labels.
        """
        names = [metric.name for metric in self.task.metrics]
        lines = [
            f"{self.model} on {self.task.name} of {self.dataset}",
            self.rule,
            _line("test fold", self._columns("proteins", "positive"), "epoch", names),
        ]
        for fold in self.folds:
            label = f"{fold.fold} (resumed)" if fold.is_resumed else str(fold.fold)
            counts = self._counts(fold.size)
            lines.append(_line(label, counts, str(fold.best_epoch), _numbers(fold.metrics, names)))
        blank = self._columns("", "")
        statistics = [self.mean(name) for name in names]
        lines += [
            _line("mean over folds", blank, "", [_number(mean) for mean, _ in statistics]),
            _line("s.d. over folds", blank, "", [_number(sd) for _, sd in statistics]),
            _line("pooled", self._counts(self.size), "", _numbers(self.pooled, names)),
            _line("  95 % from", blank, "", [_number(self.intervals[name].low) for name in names]),
            _line("  95 % to", blank, "", [_number(self.intervals[name].high) for name in names]),
            _line("majority, pooled", self._counts(self.size), "", _numbers(self.baseline, names)),
            self._verdict(),
        ]
        if self.size.is_small:
            lines.append(self.size.warning())
        return "\n".join(lines)

    def _columns(self, proteins: str, positive: str) -> str:
        return f"{proteins:>8}" if self.size.with_positives is None else f"{proteins:>8}  {positive:>8}"

    def _counts(self, size: SplitSize) -> str:
        return self._columns(str(size.proteins), str(size.with_positives))

    def _verdict(self) -> str:
        """Compare with the baseline."""
        if math.isnan(self.baseline[self.task.monitor]):
            return f"no baseline: {self.task.monitor} of a constant prediction is undefined"
        compared = f"{self.task.monitor} minus that of majority: {self.difference.text()} (95 % over proteins)"
        return f"{compared}; {'better' if self.beats_baseline else 'not shown to be better'}"


def _line(label: str, counts: str, epoch: str, cells: Sequence[str]) -> str:
    values = "".join(f"  {cell:>9}" for cell in cells)
    return f"{label:{_LABEL}}{counts}  {epoch:>5}{values}".rstrip()


def _numbers(metrics: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [_number(metrics[name]) for name in names]


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.2e}"
    return f"{value:.4f}"


FoldTest = tuple[SplitPredictions, GraphStore]
"""Predictions of a test fold, ``protein`` numbering the examples of the dataset, and its graphs."""


def tabulate_folds(dataset: Dataset, task: str, target: Target, tests: Sequence[FoldTest]) -> Predictions:
    """Return one row per residue or protein, in the order of folds and examples.

    Columns: identity as in :class:`Predictions`, ``fold`` from 1, the known label, and the prediction. Tables of pairs
    and edges have no rows.
    """
    names = target_names(target)
    labels = ("label",) if target.kind == "classification" else tuple(f"label_{name}" for name in names)
    if target.is_geometric:
        labels = ()
    identity = RESIDUE if target.level == "node" else PROTEIN
    rows: list[Any] = []
    if target.level in ("node", "graph"):
        examples = {example.id: (number, example) for number, example in enumerate(dataset.examples(task))}
        for fold, (test, store) in enumerate(tests, 1):
            for i, name in enumerate(store.names):
                number, example = examples[name]
                rows += _rows(fold, test, number, example, dataset.read(example), store[i], target)
    return Predictions((*identity, "fold", *labels, *prediction_columns(target)), rows, [], target)


def _rows(
    fold: int,
    test: SplitPredictions,
    number: int,
    example: Example,
    residues: Residues,
    graph: Any,
    target: Target,
) -> Iterator[tuple[Any, ...]]:
    rows = (test.protein_of_rows == number).nonzero().flatten()
    if target.level == "node":
        rows = rows[residue_nodes(graph)]
    threshold = test.threshold
    if threshold is not None and threshold.dim() > 1:  # that of the fold of each row
        threshold = threshold[rows]
    values = prediction_values(test.logits[rows], target, threshold)
    labels = _labels(test.y[rows], target)
    file = example.path.name if example.record is None else f"{example.path.name}#{example.record}"
    if target.level == "node":
        keys = [(file, *key) for key in residue_keys(residues)]
    else:
        keys = [(file, example.id, " ".join(residues.chain_names), len(residues))]
    for key, label, value in zip(keys, labels, values, strict=True):
        yield (*key, fold, *label, *value)


def _labels(y: Any, target: Target) -> list[tuple[Any, ...]]:
    """Return the label of each row; empty where it is unknown."""
    if target.is_geometric:
        return [()] * len(y)
    if target.kind == "classification":
        names = target_names(target)
        return [(names[k] if k >= 0 else "",) for k in y.tolist()]
    as_number = int if target.kind == "multilabel" else float
    labels = []
    for row in y.tolist():
        labels.append(tuple("" if math.isnan(value) else as_number(value) for value in row))
    return labels
