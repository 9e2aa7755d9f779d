"""Metrics of single proteins, and calibration, from the predictions of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.task.losses import known_labels
from protgraph.task.metrics import METRICS, Metric
from protgraph.task.predictions import SplitPredictions
from protgraph.train.bootstrap import RESAMPLES
from protgraph.train.weighted_metrics import WEIGHTED, ratio

__all__ = ["BINS", "ReliabilityBins", "protein_values", "bin_probabilities", "resample_mean"]

#: Bins of equal width of the calibration error, as in Guo et al. 2017.
BINS = 15


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


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Reliability of predicted probabilities: sums over the rows of each protein in bins of equal width.

    Parameters
    ----------
    count, probability, positive : ndarray
        ``(P, B)``: number of rows, sum of the predicted probabilities, and number of rows that are positive. For
        classes, the probability is that of the predicted class, and positive is a correct prediction.
    """

    count: np.ndarray
    probability: np.ndarray
    positive: np.ndarray

    def error(self, times: np.ndarray | None = None) -> np.ndarray:
        """Compute the expected calibration error of samples of proteins.

        ``Σ_b n_b / N |mean probability in b − fraction of positives in b|``.

        Parameters
        ----------
        times : ndarray, optional
            ``(R, P)``, number of copies of each protein; one sample of all proteins by default.

        Returns
        -------
        ndarray
            ``(R,)``; NaN without rows.

        References
        ----------
        Guo et al. 2017, "On calibration of modern neural networks", arXiv:1706.04599, eq. 5.
        """
        times = np.ones((1, len(self.count))) if times is None else times
        gaps = np.abs(times @ self.probability - times @ self.positive).sum(1)
        return ratio(gaps, times @ self.count.sum(1))

    def curve(self) -> list[tuple[float, float, int]]:
        """Return mean probability, fraction of positives and number of rows of each bin that has any."""
        count, probability, positive = (x.sum(0) for x in (self.count, self.probability, self.positive))
        used = np.flatnonzero(count)
        return [(float(probability[b] / count[b]), float(positive[b] / count[b]), int(count[b])) for b in used]


def bin_probabilities(predictions: RunPredictions, *, bins: int = BINS) -> ReliabilityBins | None:
    """Sort probabilities into bins; None if predictions are not probabilities of labels.

    All labels of a yes/no task with several are counted together.
    """
    found = _probabilities(predictions.rows)
    if found is None:
        return None
    probability, positive, protein = found
    place = np.clip(np.ceil(probability * bins).astype(int) - 1, 0, bins - 1)  # (a, b], as torchmetrics has it
    index, size = protein * bins + place, len(predictions.names) * bins
    sums = (np.bincount(index, weights, minlength=size) for weights in (None, probability, positive))
    return ReliabilityBins(*(x.astype(float).reshape(-1, bins) for x in sums))


def _probabilities(rows: SplitPredictions) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the probability, whether it is positive, and the protein of each known label, ``(M,)`` each."""
    known = known_labels(rows.y)
    if not rows.y.is_floating_point():
        top = rows.logits[known].double().softmax(1).max(1)
        right = top.indices == rows.y[known]
        return top.values.numpy(), right.double().numpy(), rows.protein[known].numpy()
    if not rows.is_binary:
        return None
    protein = rows.protein[:, None].expand_as(rows.y)[known]
    return rows.logits[known].double().sigmoid().numpy(), rows.y[known].double().numpy(), protein.numpy()
