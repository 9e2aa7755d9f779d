"""Metrics of single proteins, and calibration, from the predictions of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.evaluation.bootstrap import RESAMPLES
from protgraph.evaluation.calibration import BINS, ReliabilityBins, label_events
from protgraph.evaluation.weighted_metrics import ratio, weighted_metric
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric

if TYPE_CHECKING:
    from protgraph.evaluation.bootstrap import SplitScores
    from protgraph.task.predictions import SplitPredictions
    from protgraph.task.task import Task

__all__ = [
    "bin_probabilities",
    "cluster_means",
    "describe_test_split",
    "protein_values",
    "resample_mean",
    "values_by_protein",
]


def protein_values(predictions: RunPredictions, metric: Metric) -> np.ndarray:
    """Return the metric of each protein of a run, ``(P,)``; see :func:`values_by_protein`."""
    return values_by_protein(predictions.rows, len(predictions.names), metric)


def values_by_protein(rows: SplitPredictions, count: int, metric: Metric) -> np.ndarray:
    """Compute a metric on the rows of each protein.

    Returns ``(P,)`` float64; NaN for a protein without a known label, or where the metric is undefined, e.g. the AUPRC
    of a protein without positives.
    """
    weighted = weighted_metric(metric)
    protein = rows.protein_of_rows
    if weighted is not None:
        return weighted(rows, protein, np.eye(count))
    values = np.full(count, np.nan)
    lengths = torch.bincount(protein, minlength=count).tolist()
    for i, members in enumerate(protein.argsort(stable=True).split(lengths)):
        one = rows.take(members, torch.zeros_like(members))
        if bool(known_labels(one.y).any()):
            values[i] = metric(one)
    return values


def cluster_means(values: np.ndarray, clusters: Sequence[int]) -> np.ndarray:
    """Return the mean of the defined values ``(P,)`` of the proteins of each cluster, ``(C,)``."""
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    total = np.bincount(cluster, np.nan_to_num(values))
    return ratio(total, np.bincount(cluster, ~np.isnan(values)))


def describe_test_split(scores: SplitScores, task: Task) -> dict[str, Any]:
    """Return the fields of a row that describe the test proteins, and the monitored metric of each."""
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    fields: dict[str, Any] = {
        "test_proteins": scores.size.proteins,
        "test_with_positives": scores.size.with_positives,
    }
    if scores.predictions is not None:
        values = values_by_protein(scores.predictions, len(scores.names), monitor)
        fields |= {"protein_scores": tuple(values.tolist()), "test_set": scores.test_set}
    return fields


def resample_mean(values: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Compute the mean of the defined values of resampled proteins, ``(resamples,)``.

    The samples are those of :func:`protgraph.evaluation.bootstrap.bootstrap_scores` for the same number of proteins.
    """
    count = len(values)
    drawn = np.random.default_rng(seed).integers(0, count, (resamples, count))
    chosen = values[drawn]
    return ratio(np.nansum(chosen, 1), (~np.isnan(chosen)).sum(1))


def bin_probabilities(predictions: RunPredictions, *, bins: int = BINS) -> ReliabilityBins | None:
    """Sort probabilities into bins for each protein; None if predictions are not probabilities of labels.

    All labels of a yes/no task with several are counted together.
    """
    rows = predictions.rows
    is_class = not rows.y.is_floating_point()
    if not is_class and not rows.is_binary:
        return None
    logits = rows.logits.double()
    events = label_events(logits.softmax(1) if is_class else logits.sigmoid(), rows)
    return events.bins(rows.protein_of_rows.numpy()[events.row], len(predictions.names), bins=bins)
