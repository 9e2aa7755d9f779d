"""Correlations of many weighted samples of proteins at once, equal to those of the repeated rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from protgraph.task.losses import known_labels
from protgraph.task.predictions import SplitPredictions

__all__ = ["pearson_of_rows", "scores_of_means", "weighted_pearson", "weighted_ranks"]

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
    return _correlation(*((weight * a * b).sum(axis=1) for a, b in _products(x - mean_x, y - mean_y)), size)


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
    found = []
    for c, known in enumerate(known_labels(o.y).unbind(1)):
        x, y, owner = o.logits[known, c].double().numpy(), o.y[known, c].double().numpy(), place[known].numpy()
        size = np.sqrt((x @ x) * (y @ y))
        x, y = x - x.mean(), y - y.mean()
        sums = [np.bincount(owner, v, times.shape[1]) for v in (np.ones_like(x), x, y, x * x, x * y, y * y)]
        n, sx, sy, xx, xy, yy = (times @ v for v in sums)
        found.append(_correlation(xx - sx * sx / n, xy - sx * sy / n, yy - sy * sy / n, size))
    stacked = np.stack(found)
    return np.nanmean(stacked, axis=0) if not np.isnan(stacked).all() else stacked[0]


def scores_of_means(name: str) -> Callable[[SplitPredictions, torch.Tensor, np.ndarray], np.ndarray]:
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


def _products(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a, a), (a, b), (b, b)]


def _correlation(xx: np.ndarray, xy: np.ndarray, yy: np.ndarray, size: np.ndarray | float) -> np.ndarray:
    """Divide centered sums of products; NaN if they are rounding errors of values of this ``size``, √(Σx² Σy²)."""
    under = np.sqrt(np.maximum(xx * yy, 0))
    return np.divide(xy, under, out=np.full(len(xy), np.nan), where=under > _SMALLEST * size)
