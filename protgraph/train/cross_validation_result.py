"""Result of a cross-validation: metrics of each fold, pooled metrics with intervals, and their table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from protgraph.failure import Failure
from protgraph.task.task import Task
from protgraph.train.bootstrap import BootstrapInterval, SplitSize
from protgraph.train.prediction_table import Predictions

__all__ = ["CrossValidation", "FoldResult"]

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
    best_epoch : int
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
    model, dataset : str
    task : Task
    rule : str
        How proteins were assigned to folds.
    folds : tuple of FoldResult
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
        values = [v for v in (fold.metrics[metric] for fold in self.folds) if not math.isnan(v)]
        return fmean(values) if values else math.nan, stdev(values) if len(values) > 1 else math.nan

    @property
    def beats_baseline(self) -> bool:
        """True if the interval of the difference from the baseline is on the better side of 0."""
        modes = {metric.name: metric.mode for metric in self.task.metrics}
        return self.difference.low > 0 if modes[self.task.monitor] == "max" else self.difference.high < 0

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
            label = f"{fold.fold}{' (resumed)' if fold.is_resumed else ''}"
            lines.append(_line(label, self._counts(fold.size), str(fold.best_epoch), _numbers(fold.metrics, names)))
        blank = self._columns("", "")
        statistics = [self.mean(name) for name in names]
        lines += [
            _line("mean over folds", blank, "", [_number(mean) for mean, _ in statistics]),
            _line("s.d. over folds", blank, "", [_number(sd) for _, sd in statistics]),
            _line("pooled", self._counts(self.size), "", _numbers(self.pooled, names)),
            _line("  95 % from", blank, "", [_number(self.intervals[name].low) for name in names]),
            _line("  95 % to", blank, "", [_number(self.intervals[name].high) for name in names]),
            _line("majority, pooled", self._counts(self.size), "", _numbers(self.baseline, names)),
        ]
        return "\n".join([*lines, self._verdict(), *([self.size.warning()] if self.size.is_small else [])])

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
    return "–" if math.isnan(value) else f"{value:.4f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.2e}"
