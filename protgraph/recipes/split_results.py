"""Results of a trained model on one split: metrics with intervals over proteins, and calibration scores."""

from __future__ import annotations

import math
from dataclasses import replace

from protgraph.task.losses import known_labels
from protgraph.task.metrics import compute_metrics
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task
from protgraph.train.bootstrap import bootstrap_scores, count_split, percentile_interval
from protgraph.train.calibration import calibration_scores
from protgraph.train.checkpoint import Checkpoint
from protgraph.train.predict import probabilities
from protgraph.train.trained_model import SplitResult

__all__ = ["split_result"]


def split_result(task: Task, predictions: SplitPredictions, checkpoint: Checkpoint) -> SplitResult:
    """Return metrics of a task with 95 % intervals over proteins, and calibration errors with and without calibration.

    Parameters
    ----------
    task : Task
    predictions : SplitPredictions
        Uncalibrated logits of the split, and labels. Metrics of a regression are of the calibrated values.
    checkpoint : Checkpoint
        Threshold and calibration.
    """
    target, calibration = checkpoint.model.target, checkpoint.calibration
    predictions = predictions.with_threshold(checkpoint.threshold)
    if calibration is not None and target.kind == "regression":
        predictions = replace(predictions, logits=calibration.probabilities(predictions.logits, target))
    values = compute_metrics(task.metrics, predictions, task=task.name)
    metrics = {}
    for metric in task.metrics:
        interval = percentile_interval(bootstrap_scores(predictions, metric))
        metrics[metric.name] = tuple(map(_finite, (values[metric.name], interval.low, interval.high)))
    scores = {}
    if calibration is not None and target.kind != "regression":
        before = calibration_scores(probabilities(predictions.logits, target), predictions, target)
        after = calibration.probabilities(predictions.logits, target)
        after = calibration_scores(after, predictions, target)
        scores = {"ece_before": before.ece, "ece_after": after.ece}
        scores |= {"brier_before": before.brier, "brier_after": after.brier}
    known = known_labels(predictions.y)
    return SplitResult(
        proteins=count_split(predictions).proteins,
        labels=int(known.sum()),
        positives=_positives(predictions, target.size, target.kind),
        metrics=metrics,
        calibration=scores,
    )


def _positives(predictions: SplitPredictions, size: int, kind: str) -> list[int]:
    y = predictions.y
    if kind == "classification":
        return y[known_labels(y)].bincount(minlength=size).tolist()
    return [int((y[:, i] == 1).sum()) for i in range(size)] if kind == "multilabel" else []


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
