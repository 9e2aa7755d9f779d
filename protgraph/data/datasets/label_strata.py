"""Label counts that random splits balance: classes, positives and negatives, or ranges of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.target import Target

__all__ = ["LabelStrata", "label_strata"]

_MOST_RANGES = 5


@dataclass(frozen=True, eq=False)
class LabelStrata:
    """Counts of the labels of each table row in the strata that splits balance.

    Parameters
    ----------
    counts : ndarray
        ``(R, K)`` int64: 1 where the label of a row is in a stratum.
    required : ndarray
        ``(K,)`` cost of a split that lacks a stratum; see :func:`protgraph.data.datasets.split_balance.imbalance`.
    text : str
        Names of what is balanced, e.g. "classes".
    """

    counts: np.ndarray
    required: np.ndarray
    text: str

    def of(self, rows: np.ndarray) -> tuple[int, ...]:
        """Return the K counts of these ``rows (M,)``."""
        return tuple(self.counts[rows].sum(0).tolist())


def label_strata(values: np.ndarray, target: Target) -> LabelStrata | None:
    """Return the strata of labels: each class; positives and negatives of each label; or quantile ranges of each value.

    Parameters
    ----------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float with NaN for unknown.
    target : Target

    Examples
    --------
    >>> import numpy as np
    >>> label_strata(np.array([[1.0], [0.0], [np.nan]]), Target("site", "node", "multilabel", 1)).counts
    array([[0, 1],
           [1, 0],
           [0, 0]])
    """
    if target.kind == "classification":
        counts = values[:, None] == np.arange(target.size)
        return LabelStrata(counts.astype(np.int64), np.full(target.size, (2 / target.size) ** 2), "classes")
    if target.kind == "multilabel":
        counts = np.concatenate([values == 0, values == 1], axis=1)
        return LabelStrata(
            counts.astype(np.int64), np.full(2 * target.size, 4 / target.size), "positives and negatives"
        )
    if target.kind == "regression":
        counts = np.concatenate([_ranges(column) for column in values.T], axis=1)
        return LabelStrata(counts.astype(np.int64), np.zeros(counts.shape[1]), "ranges of values")
    return None


def _ranges(values: np.ndarray) -> np.ndarray:
    """Return ``(R, Q)`` bool, the range of each value between quantiles; at least three values in a range."""
    known = values[~np.isnan(values)]
    number = int(np.clip(len(known) // 3, 1, _MOST_RANGES))
    edges = np.unique(np.quantile(known, np.linspace(0, 1, number + 1)[1:-1])) if known.size else np.zeros(0)
    place = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
    return place[:, None] == np.arange(len(edges) + 1)
