"""Metrics of single proteins, and calibration, from the predictions of a run."""

from __future__ import annotations

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.task.losses import known_labels
from protgraph.task.metrics import METRICS, Metric
from protgraph.train.bootstrap import RESAMPLES
from protgraph.train.reliability import BINS, ReliabilityBins, label_events
from protgraph.train.weighted_metrics import WEIGHTED, ratio

__all__ = ["bin_probabilities", "protein_values", "resample_mean"]


def protein_values(predictions: RunPredictions, metric: Metric) -> np.ndarray:
    """Compute a metric on the rows of each protein.

    Parameters
    ----------
    predictions : RunPredictions
    metric : Metric

    Returns
    -------
    ndarray
        ``(P,)`` float64; NaN for a protein without a known label, or where the metric is undefined, e.g. the AUPRC of a
        protein without positives.
    """
    rows, count = predictions.rows, len(predictions.names)
    if WEIGHTED.get(metric.name) is not None and METRICS.get(metric.name) is metric:
        return WEIGHTED[metric.name](rows, rows.protein, np.eye(count))
    values = np.full(count, np.nan)
    ends = np.cumsum(predictions.lengths)
    for i, (end, length) in enumerate(zip(ends.tolist(), predictions.lengths.tolist(), strict=True)):
        members = torch.arange(end - length, end)
        one = rows.take(members, torch.zeros(length, dtype=torch.long))
        if bool(known_labels(one.y).any()):
            values[i] = metric(one)
    return values


def resample_mean(values: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Compute the mean of the defined values of resampled proteins, ``(resamples,)``.

    The samples are those of :func:`protgraph.train.bootstrap.bootstrap_scores` for the same number of proteins.
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
    return events.bins(rows.protein.numpy()[events.row], len(predictions.names), bins=bins)
