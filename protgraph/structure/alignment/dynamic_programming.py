"""Alignments of score matrices by dynamic programming, many at once."""

from __future__ import annotations

import numpy as np

__all__ = ["align_matrices"]


def align_matrices(scores: np.ndarray, gap: np.ndarray | float) -> list[np.ndarray]:
    """Return the best local alignment of each matrix; a gap costs the same whatever its length.

    ``H(i, j) = max(0, H(i−1, j−1) + S(i, j), max_k H(i, j−k) − g, max_k H(i−k, j) − g)`` (Smith & Waterman 1981, eq. 1
    with a constant gap weight). With scores that are not negative, gaps at the ends are free and the alignment is
    global.

    Parameters
    ----------
    scores : ndarray
        ``(P, M, N)`` float32.
    gap : ndarray or float
        ``(P,)`` cost of a gap, not negative.

    Returns
    -------
    list of ndarray
        ``(K, 2)`` int64: rows and columns that are aligned, both increasing.

    Examples
    --------
    >>> align_matrices(np.eye(4, dtype=np.float32)[None], 0.5)[0].tolist()
    [[0, 0], [1, 1], [2, 2], [3, 3]]
    """
    number, m, n = scores.shape
    cost = np.broadcast_to(np.asarray(gap, np.float32), number).copy()[:, None]
    best = np.zeros((number, m + 1, n + 1), np.float32)
    upward = np.full((number, n), -np.inf, np.float32)  # best value with a gap in the columns so far
    reached = np.empty((number, n), np.float32)
    for i in range(m):
        row = best[:, i + 1, 1:]
        np.subtract(best[:, i, 1:], cost, out=reached)
        np.maximum(upward, reached, out=upward)
        np.add(best[:, i, :-1], scores[:, i], out=row)
        np.maximum(row, upward, out=row)
        np.maximum(row, 0, out=row)
        np.maximum.accumulate(row, axis=1, out=reached)
        reached -= cost
        np.maximum(row[:, 1:], reached[:, :-1], out=row[:, 1:])
    return [_trace(best[p], scores[p], float(cost[p, 0])) for p in range(number)]


def _trace(best: np.ndarray, scores: np.ndarray, cost: float) -> np.ndarray:
    """Follow the steps that led to the largest value backwards."""
    n, gap = scores.shape[1], np.float32(cost)
    steps = (best[1:, 1:] != best[:-1, :-1] + scores).view(np.uint8)  # 0: the residues are aligned
    if gap == 0:
        steps += steps * (best[1:, 1:] != best[1:, :-1])  # 1: one to the left, 2: one up
    steps[best[1:, 1:] <= 0] = 3
    codes = steps.tobytes()
    i, j = (int(k) for k in np.unravel_index(int(best.argmax()), best.shape))
    pairs = []
    while i and j and (step := codes[(i - 1) * n + j - 1]) != 3:
        if step == 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif gap == 0:
            i, j = (i, j - 1) if step == 1 else (i - 1, j)
        else:
            left = np.flatnonzero(best[i, :j] - gap == best[i, j])
            if len(left):
                j = int(left[-1])
            else:
                i = int(np.flatnonzero(best[:i, j] - gap == best[i, j])[-1])
    return np.array(pairs[::-1], np.int64).reshape(-1, 2)
