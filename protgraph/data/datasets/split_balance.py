"""Balance groups over splits: sizes and label counts close to their shares, and every label in every split.

Not sklearn.model_selection.StratifiedGroupKFold: it makes equal folds only, balances classes but not sizes, and assigns
each group once without revision (scikit-learn 1.9.1, 2026-11-22).
"""

from __future__ import annotations

import numpy as np

__all__ = ["balance_groups", "imbalance"]

_EMPTY = 100.0  # cost of a split without any protein, above that of every other fault
_SWAPS = 400  # number of groups up to which pairs of groups are exchanged
_STARTS = 4  # random orders up to that number of groups
_SWEEPS = 50
_GAIN = 1e-12  # least improvement of a step


def imbalance(totals: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray) -> np.ndarray:
    """Compute the imbalance of splits.

    It is Σ_s Σ_k w_k (n_sk / T_k − p_s)² / p_s, plus r_k for each required column k that a split s lacks. n_sk is the
    count in the split, T_k the count in all splits, and p_s the share of the split.

    Parameters
    ----------
    totals : ndarray
        ``(…, S, K)`` counts n of each split. Columns without any count have no effect.
    shares : ndarray
        ``(S,)`` share of each split; they sum to 1.
    weights, required : ndarray
        ``(K,)`` weight w of each column, and cost r of a split that lacks it. The cost is up to 10 % higher for earlier
        splits, so that a column of few groups is in these.

    Returns
    -------
    ndarray
        ``(…)``.
    """
    whole = totals.sum(-2, keepdims=True)
    fraction, share = totals / np.where(whole > 0, whole, 1), shares[:, None]
    priority = np.linspace(1.1, 1, len(shares))[:, None]
    cost = weights * (fraction - share) ** 2 / share + priority * required * (totals == 0)
    return np.where(whole > 0, cost, 0).sum((-2, -1))


def balance_groups(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, *, seed: int
) -> np.ndarray:
    """Assign groups to splits with small :func:`imbalance`: greedily in random order, then by moves and swaps.

    Parameters
    ----------
    counts : ndarray
        ``(G, K)`` non-negative whole numbers, the counts of each group. Column 0 is the number of proteins.
    shares, weights, required : ndarray
        ``(S,)``, ``(K,)`` and ``(K,)``; see :func:`imbalance`.

    Returns
    -------
    ndarray
        ``(G,)`` int64, number of the split of each group. No move of one group to another split reduces the imbalance.
        Up to 400 groups, no swap of two does, and it is the best of four random orders.
    """
    counts, required = counts.astype(np.float64), required.astype(np.float64)
    required[0] = _EMPTY
    random, starts = np.random.default_rng(seed), _STARTS if len(counts) <= _SWAPS else 1
    found = [_search(counts, shares, weights, required, random.permutation(len(counts))) for _ in range(starts)]
    best = min(range(starts), key=lambda i: round(found[i][0], 9))  # the first of equals
    return found[best][1]


def _search(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, order: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the imbalance and the splits of one random order of groups."""
    totals = np.zeros((len(shares), counts.shape[1]))  # (S, K)
    split = _greedy(counts, order, totals, shares, weights)

    def improve(g: int) -> bool:
        """Apply the best move or swap of a group; return False if none reduces the imbalance."""
        here = split[g]
        others = np.flatnonzero(split != here) if len(counts) <= _SWAPS else np.zeros(0, np.int64)
        target = np.concatenate([np.delete(np.arange(len(shares)), here), split[others]])  # (M,) moves, then swaps
        moved = np.tile(counts[g], (len(target), 1))  # (M, K)
        moved[len(shares) - 1 :] -= counts[others]
        after = np.tile(totals, (len(target), 1, 1))  # (M, S, K)
        after[:, here] -= moved
        after[np.arange(len(target)), target] += moved
        cost = imbalance(after, shares, weights, required)
        best = int(np.argmin(cost)) if len(cost) else -1
        if best < 0 or cost[best] >= imbalance(totals, shares, weights, required) - _GAIN:
            return False
        if best >= len(shares) - 1:
            split[others[best - len(shares) + 1]] = here
        split[g] = target[best]
        totals[:] = after[best]
        return True

    for _ in range(_SWEEPS):
        if not sum([improve(g) for g in order]):
            break
    return float(imbalance(totals, shares, weights, required)), split


def _greedy(
    counts: np.ndarray, order: np.ndarray, totals: np.ndarray, shares: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Assign each group to the split where the squares of :func:`imbalance` grow least; ``totals`` is filled."""
    split = np.zeros(len(counts), dtype=np.int64)
    whole = counts.sum(0)
    scale = np.where(whole > 0, whole, 1)
    for g in order:
        own, filled = counts[g] / scale, totals / scale
        growth = (weights * own * (2 * (filled - shares[:, None]) + own) / shares[:, None]).sum(1)  # (S,)
        split[g] = int(np.argmin(growth))
        totals[split[g]] += counts[g]
    return split
