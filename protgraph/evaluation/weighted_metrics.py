"""Metrics of many weightings of proteins at once, e.g. of bootstrap samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric, registered_metric
from protgraph.task.predictions import SplitPredictions

__all__ = [
    "WeightedScores",
    "pearson_of_rows",
    "ratio",
    "scores_of_means",
    "weighted_metric",
    "weighted_pearson",
    "weighted_ranks",
]

WeightedScores = Callable[[SplitPredictions, torch.Tensor, np.ndarray], np.ndarray]
"""From predictions, the protein of each row, and the copies of each protein in R samples, to R scores."""

_SMALLEST = 1e-12  # variance relative to the mean square; below it, a correlation is undefined


def weighted_pearson(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the Pearson correlation of samples with repeated values.

    ``x``, ``y``: ``(P,)`` or ``(R, P)``. ``weight``: ``(R, P)``, copies of each value. Returns ``(R,)`` float64, NaN
    where a variance is 0.
    """
    squares_x = (weight * x * x).sum(axis=1)
    squares_y = (weight * y * y).sum(axis=1)
    size = np.sqrt(squares_x * squares_y)

    total = weight.sum(axis=1, keepdims=True)
    mean_x = (weight * x).sum(axis=1, keepdims=True) / total
    mean_y = (weight * y).sum(axis=1, keepdims=True) / total
    x = x - mean_x
    y = y - mean_y
    xx = (weight * x * x).sum(axis=1)
    xy = (weight * x * y).sum(axis=1)
    yy = (weight * y * y).sum(axis=1)
    return _correlation(xx, xy, yy, size)


def weighted_ranks(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return ranks ``(R, P)`` of ``x (P,)`` in samples with ``weight (R, P)`` copies; equal ones have the mean rank."""
    values, group = np.unique(x, return_inverse=True)
    copies = np.zeros((len(weight), len(values)))
    for column, number in enumerate(group):
        copies[:, number] += weight[:, column]
    last_rank = copies.cumsum(axis=1)
    mean_rank = last_rank - (copies - 1) / 2
    return mean_rank[:, group]


def pearson_of_rows(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
    """Return the Pearson correlation ``(R,)`` over all rows of each sample, mean over values.

    ``protein (N,)`` is the protein of each row, and ``times (R, P)`` the copies of each protein in each sample.
    """
    correlations = []
    for c, known in enumerate(known_labels(o.y).unbind(1)):
        x = o.logits[known, c].double().numpy()
        y = o.y[known, c].double().numpy()
        size = np.sqrt((x @ x) * (y @ y))
        x = x - x.mean()
        y = y - y.mean()

        # Sums per protein, then per sample.
        owner = protein[known].numpy()
        summands = (np.ones_like(x), x, y, x * x, x * y, y * y)
        sums = [times @ np.bincount(owner, values, times.shape[1]) for values in summands]
        n, sum_x, sum_y, sum_xx, sum_xy, sum_yy = sums
        xx = sum_xx - sum_x * sum_x / n
        xy = sum_xy - sum_x * sum_y / n
        yy = sum_yy - sum_y * sum_y / n
        correlations.append(_correlation(xx, xy, yy, size))
    stacked = np.stack(correlations)
    if np.isnan(stacked).all():
        return stacked[0]
    return np.nanmean(stacked, axis=0)


def scores_of_means(name: str) -> WeightedScores:
    """Return the function of a metric of protein means: "pearson", "spearman" or "rmse"."""

    def function(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
        known = known_labels(o.y[:, 0])
        owner = protein[known]
        num_proteins = times.shape[1]
        count = np.bincount(owner.numpy(), minlength=num_proteins)
        sums_x = _sums(o.logits[known, 0], owner, num_proteins)
        sums_y = _sums(o.y[known, 0], owner, num_proteins)

        # means of the proteins with a label
        is_used = count > 0
        x = sums_x[is_used] / count[is_used]
        y = sums_y[is_used] / count[is_used]
        weight = times[:, is_used]
        if name == "rmse":
            mean_square = weight @ (x - y) ** 2 / weight.sum(axis=1)
            return np.sqrt(mean_square)
        if name == "spearman":
            x = weighted_ranks(x, weight)
            y = weighted_ranks(y, weight)
        return weighted_pearson(x, y, weight)

    return function


def _correlation(xx: np.ndarray, xy: np.ndarray, yy: np.ndarray, size: np.ndarray | float) -> np.ndarray:
    """Divide centered sums of products; NaN if they are rounding errors of values of this ``size``, √(Σx² Σy²)."""
    denominator = np.sqrt(np.maximum(xx * yy, 0))
    correlation = np.full(len(xy), np.nan)
    np.divide(xy, denominator, out=correlation, where=denominator > _SMALLEST * size)
    return correlation


def weighted_metric(metric: Metric) -> WeightedScores | None:
    """Return ``Metric.weighted`` of a metric, also of one of this package; None if it has none."""
    if metric.weighted is None and registered_metric(metric.name) is metric:
        return _WEIGHTED.get(metric.name)
    return metric.weighted


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide ``numerator`` by ``denominator``, of any shapes that broadcast; NaN where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def _sums(values: torch.Tensor, protein: torch.Tensor, proteins: int) -> np.ndarray:
    """Sum values per protein, ``(P,)`` float64."""
    return np.bincount(protein.numpy(), values.double().numpy(), minlength=proteins)


def _weighted_mean(values: torch.Tensor, count: torch.Tensor, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
    """Average values, of which each row has ``count`` (0 or 1), over the rows of each sample, ``(R,)``."""
    sums = times @ _sums(values, protein, times.shape[1])
    counts = times @ _sums(count, protein, times.shape[1])
    return ratio(sums, counts)


def _mean(values: list[np.ndarray]) -> np.ndarray:
    """Average over labels for which the metric is defined, ``(R,)``."""
    stacked = np.stack(values)
    is_defined = ~np.isnan(stacked)
    return ratio(np.nansum(stacked, axis=0), is_defined.sum(axis=0))


def _accuracy(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known = o.y >= 0
    is_correct = o.logits.argmax(1) == o.y
    return _weighted_mean(known & is_correct, known, protein, times)


def _macro_f1(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known = o.y >= 0
    predicted = o.logits.argmax(1)
    num_proteins = times.shape[1]
    values = []
    for c in range(o.logits.size(1)):
        is_true = known & (o.y == c)
        is_called = known & (predicted == c)
        true_positives = times @ _sums(is_true & is_called, protein, num_proteins)
        true_and_called = times @ _sums(is_true.double() + is_called, protein, num_proteins)
        values.append(ratio(2 * true_positives, true_and_called))  # NaN: the class occurs nowhere
    return _mean(values)


def _errors(power: int) -> WeightedScores:
    """Return the function that computes the p-th root of the mean of ``|error|^p``, mean over values."""

    def function(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
        known = known_labels(o.y)
        differences = (o.logits - o.y).double().abs()
        errors = torch.where(known, differences**power, 0.0)
        values = []
        for c in range(o.y.size(1)):
            mean = _weighted_mean(errors[:, c], known[:, c], protein, times)
            values.append(mean ** (1 / power))
        return _mean(values)

    return function


def _perplexity(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known = o.y >= 0
    log_p = o.logits.double().log_softmax(1)
    of_label = log_p.gather(1, o.y.clamp(min=0)[:, None])[:, 0]
    surprise = torch.where(known, -of_label, 0.0)
    return np.exp(_weighted_mean(surprise, known, protein, times))


def _of_decisions(function: Callable[..., np.ndarray]) -> WeightedScores:
    """Return the function that computes a score from true and false positives, false and true negatives."""

    def scores(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
        threshold = 0.0 if o.threshold is None else o.threshold
        is_called = o.logits >= threshold
        is_true = o.y == 1
        known = known_labels(o.y)
        outcomes = (
            known & is_called & is_true,
            known & is_called & ~is_true,
            known & ~is_called & is_true,
            known & ~is_called & ~is_true,
        )
        num_proteins = times.shape[1]
        values = []
        for c in range(o.y.size(1)):
            counts = [times @ _sums(outcome[:, c], protein, num_proteins) for outcome in outcomes]
            values.append(function(*counts))
        return _mean(values)

    return scores


def _matthews(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    numerator = tp * tn - fp * fn
    denominator = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    mcc = np.zeros(len(tp))
    np.divide(numerator, denominator, out=mcc, where=denominator > 0)
    is_empty = tp + fp + fn + tn == 0
    mcc[is_empty] = np.nan
    return mcc


def _dice(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    return ratio(2 * tp, 2 * tp + fp + fn)


_Area = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
#: Numbers of an array ``(thresholds, samples)`` that are in memory at once.
_AT_ONCE = 1 << 22


def _ranked(area: _Area) -> WeightedScores:
    """Return the function that computes an area under a curve over falling scores, for all samples at once.

    The scores of positive rows are the thresholds. Rows are counted once per threshold and protein, as sparse matrices:
    each sample takes one operation per row.
    """

    def function(o: SplitPredictions, protein: torch.Tensor, times: np.ndarray) -> np.ndarray:
        copies = np.asarray(times, dtype=float)
        values = []
        for c, known in enumerate(known_labels(o.y).unbind(1)):
            score = o.logits[known, c].numpy()
            is_positive = (o.y[known, c] == 1).numpy()
            owner = protein[known].numpy()
            values.append(_areas(area, score, is_positive, owner, copies))
        return _mean(values)

    return function


def _areas(area: _Area, score: np.ndarray, is_positive: np.ndarray, owner: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the area of each sample, ``(R,)``; NaN without positives or negatives."""
    from scipy.sparse import csr_array

    thresholds = np.unique(score[is_positive])  # rising
    num_thresholds = len(thresholds)
    num_proteins = times.shape[1]
    highest = num_thresholds - np.searchsorted(thresholds, score, side="right")  # reached by a row, from the top

    def count(rows: np.ndarray) -> csr_array:
        """Count rows by the highest threshold that they reach and by protein."""
        ones = np.ones(rows.sum())
        return csr_array((ones, (highest[rows], owner[rows])), shape=(num_thresholds, num_proteins))

    reaches_one = highest < num_thresholds
    is_tied = np.isin(score, thresholds)
    true_counts = count(is_positive)
    false_counts = count(~is_positive & reaches_one)
    tied_counts = count(~is_positive & is_tied)

    positives = times @ np.bincount(owner[is_positive], minlength=num_proteins)
    negatives = times @ np.bincount(owner[~is_positive], minlength=num_proteins)
    areas = np.full(len(times), np.nan)
    defined = np.flatnonzero((positives > 0) & (negatives > 0))
    size = max(1, _AT_ONCE // max(1, num_thresholds))
    for begin in range(0, len(defined), size):
        samples = defined[begin : begin + size]
        copies = times[samples].T  # (proteins, samples)
        true = true_counts @ copies  # (thresholds, samples)
        false = np.cumsum(false_counts @ copies, axis=0)
        tied = tied_counts @ copies
        sums = area(true, false, tied, negatives[samples])
        areas[samples] = sums / positives[samples]
    return areas


def _average_precision(true: np.ndarray, false: np.ndarray, tie: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Σ (positives at a threshold) · (precision at it)."""
    reached = np.cumsum(true, 0)
    total = reached + false
    precision = np.divide(reached, total, out=np.zeros_like(total), where=total > 0)
    return np.einsum("ts,ts->s", true, precision)


def _area_under_roc(true: np.ndarray, false: np.ndarray, tie: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Σ (positives at a threshold) · (fraction of negatives below it, half of those at it)."""
    below = negatives - false + tie / 2
    return np.einsum("ts,ts->s", true, below) / negatives


#: ``Metric.weighted`` of the metrics of this package, by name.
_WEIGHTED: dict[str, WeightedScores] = {
    "accuracy": _accuracy,
    "auprc": _ranked(_average_precision),
    "auroc": _ranked(_area_under_roc),
    "dice": _of_decisions(_dice),
    "macro_f1": _macro_f1,
    "mae": _errors(1),
    "mcc": _of_decisions(_matthews),
    "pearson_of_means": scores_of_means("pearson"),
    "pearson_overall": pearson_of_rows,
    "perplexity": _perplexity,
    "recovery": _accuracy,
    "rmse": _errors(2),
    "rmse_of_means": scores_of_means("rmse"),
    "spearman_of_means": scores_of_means("spearman"),
}
