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

    Parameters
    ----------
    x, y : ndarray
        ``(P,)`` or ``(R, P)``.
    weight : ndarray
        ``(R, P)``, copies of each value.

    Returns
    -------
    ndarray
        ``(R,)`` float64, NaN where a variance is 0.
    """
    total = weight.sum(axis=1)
    mean_x, mean_y = ((weight * v).sum(axis=1, keepdims=True) / total[:, None] for v in (x, y))
    size = np.sqrt((weight * x * x).sum(axis=1) * (weight * y * y).sum(axis=1))
    x, y = x - mean_x, y - mean_y
    xx, xy, yy = ((weight * a * b).sum(axis=1) for a, b in ((x, x), (x, y), (y, y)))
    return _correlation(xx, xy, yy, size)


def weighted_ranks(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return ranks ``(R, P)`` of ``x (P,)`` in samples with ``weight (R, P)`` copies; equal ones have the mean rank."""
    values, group = np.unique(x, return_inverse=True)
    copies = np.zeros((len(weight), len(values)))
    for column, number in enumerate(group):
        copies[:, number] += weight[:, column]
    return (copies.cumsum(axis=1) - (copies - 1) / 2)[:, group]


def pearson_of_rows(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
    """Return the Pearson correlation ``(R,)`` over all rows of each sample, mean over values.

    ``place (N,)`` is the protein of each row, and ``times (R, P)`` the copies of each protein in each sample.
    """
    correlations = []
    for c, known in enumerate(known_labels(o.y).unbind(1)):
        x, y, owner = o.logits[known, c].double().numpy(), o.y[known, c].double().numpy(), place[known].numpy()
        size = np.sqrt((x @ x) * (y @ y))
        x, y = x - x.mean(), y - y.mean()
        sums = [np.bincount(owner, v, times.shape[1]) for v in (np.ones_like(x), x, y, x * x, x * y, y * y)]
        n, sx, sy, xx, xy, yy = (times @ v for v in sums)
        correlations.append(_correlation(xx - sx * sx / n, xy - sx * sy / n, yy - sy * sy / n, size))
    stacked = np.stack(correlations)
    return np.nanmean(stacked, axis=0) if not np.isnan(stacked).all() else stacked[0]


def scores_of_means(name: str) -> WeightedScores:
    """Return the function of a metric of protein means: "pearson", "spearman" or "rmse"."""

    def function(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
        known = known_labels(o.y[:, 0])
        owner = place[known].numpy()
        count = np.bincount(owner, minlength=times.shape[1])
        used = count > 0
        x, y = (
            np.bincount(owner, v[known, 0].double().numpy(), times.shape[1])[used] / count[used]
            for v in (o.logits, o.y)
        )
        weight = times[:, used]
        if name == "rmse":
            return np.sqrt(weight @ (x - y) ** 2 / weight.sum(axis=1))
        if name == "spearman":
            return weighted_pearson(weighted_ranks(x, weight), weighted_ranks(y, weight), weight)
        return weighted_pearson(x, y, weight)

    return function


def _correlation(xx: np.ndarray, xy: np.ndarray, yy: np.ndarray, size: np.ndarray | float) -> np.ndarray:
    """Divide centered sums of products; NaN if they are rounding errors of values of this ``size``, √(Σx² Σy²)."""
    under = np.sqrt(np.maximum(xx * yy, 0))
    return np.divide(xy, under, out=np.full(len(xy), np.nan), where=under > _SMALLEST * size)


def weighted_metric(metric: Metric) -> WeightedScores | None:
    """Return ``Metric.weighted`` of a metric, also of one of this package; None if it has none."""
    if metric.weighted is None and registered_metric(metric.name) is metric:
        return _WEIGHTED.get(metric.name)
    return metric.weighted


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide ``numerator`` by ``denominator``, of any shapes that broadcast; NaN where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    return np.divide(numerator, denominator, out=np.full(shape, np.nan), where=denominator > 0)


def _sums(values: torch.Tensor, place: torch.Tensor, proteins: int) -> np.ndarray:
    """Sum values per protein, ``(P,)`` float64."""
    return np.bincount(place.numpy(), values.double().numpy(), minlength=proteins)


def _weighted_mean(values: torch.Tensor, count: torch.Tensor, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
    """Average values, of which each row has ``count`` (0 or 1), over the rows of each sample, ``(R,)``."""
    proteins = times.shape[1]
    return ratio(times @ _sums(values, place, proteins), times @ _sums(count, place, proteins))


def _mean(values: list[np.ndarray]) -> np.ndarray:
    """Average over labels for which the metric is defined, ``(R,)``."""
    stacked = np.stack(values)
    return ratio(np.nansum(stacked, 0), (~np.isnan(stacked)).sum(0))


def _accuracy(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known = o.y >= 0
    return _weighted_mean(known & (o.logits.argmax(1) == o.y), known, place, times)


def _macro_f1(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known, predicted, proteins = o.y >= 0, o.logits.argmax(1), times.shape[1]
    values = []
    for c in range(o.logits.size(1)):
        true, called = known & (o.y == c), known & (predicted == c)
        both, *parts = (_sums(x, place, proteins) for x in (true & called, true, called))
        values.append(ratio(2 * (times @ both), times @ sum(parts)))  # NaN: the class occurs nowhere
    return _mean(values)


def _errors(power: int) -> WeightedScores:
    """Return the function that computes the p-th root of the mean of ``|error|^p``, mean over values."""

    def function(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
        known = known_labels(o.y)
        errors = torch.where(known, (o.logits - o.y).double().abs() ** power, 0.0)
        columns = zip(errors.unbind(1), known.unbind(1), strict=True)
        return _mean([_weighted_mean(error, count, place, times) ** (1 / power) for error, count in columns])

    return function


def _perplexity(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
    known = o.y >= 0
    picked = o.logits.double().log_softmax(1).gather(1, o.y.clamp(min=0)[:, None])[:, 0]
    return np.exp(_weighted_mean(torch.where(known, -picked, 0.0), known, place, times))


def _of_decisions(function: Callable[..., np.ndarray]) -> WeightedScores:
    """Return the function that computes a score from true and false positives, false and true negatives."""

    def scores(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
        cuts = (torch.zeros(o.y.size(1)) if o.threshold is None else o.threshold).expand_as(o.y)
        values = []
        for c, known in enumerate(known_labels(o.y).unbind(1)):
            called, true = o.logits[:, c] >= cuts[:, c], o.y[:, c] == 1
            parts = (known & called & true, known & called & ~true, known & ~called & true, known & ~called & ~true)
            values.append(function(*(times @ _sums(part, place, times.shape[1]) for part in parts)))
        return _mean(values)

    return scores


def _matthews(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    under = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    mcc = np.divide(tp * tn - fp * fn, under, out=np.zeros(len(tp)), where=under > 0)
    return np.where(tp + fp + fn + tn > 0, mcc, np.nan)


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

    def function(o: SplitPredictions, place: torch.Tensor, times: np.ndarray) -> np.ndarray:
        values = []
        for c, known in enumerate(known_labels(o.y).unbind(1)):
            score, label, owner = (x[known].numpy() for x in (o.logits[:, c], o.y[:, c] == 1, place))
            values.append(_areas(area, score, label, owner, np.asarray(times, dtype=float)))
        return _mean(values)

    return function


def _areas(area: _Area, score: np.ndarray, label: np.ndarray, owner: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the area of each sample, ``(R,)``; NaN without positives or negatives."""
    from scipy.sparse import csr_array

    rising = np.unique(score[label])
    highest = len(rising) - np.searchsorted(rising, score, side="right")  # that the row reaches; counted from the top
    shape = (len(rising), times.shape[1])

    def count(rows: np.ndarray) -> csr_array:
        return csr_array((np.ones(rows.sum()), (highest[rows], owner[rows])), shape=shape)

    reaches_one = highest < len(rising)
    tied = np.isin(score, rising)
    counts = [count(label), count(~label & reaches_one), count(~label & tied)]
    positives, negatives = (times @ np.bincount(owner[rows], minlength=shape[1]) for rows in (label, ~label))
    areas = np.full(len(times), np.nan)
    defined = np.flatnonzero((positives > 0) & (negatives > 0))
    size = max(1, _AT_ONCE // max(1, len(rising)))
    for samples in (defined[i : i + size] for i in range(0, len(defined), size)):
        true, false, tie = (matrix @ times[samples].T for matrix in counts)  # (thresholds, samples)
        sums = area(true, np.cumsum(false, 0), tie, negatives[samples])
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
    return np.einsum("ts,ts->s", true, negatives - false + tie / 2) / negatives


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
