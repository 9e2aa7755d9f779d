"""The k nearest among some points from all pairs: candidates in float32, their order in float64.

Not ``scipy.spatial.distance.cdist`` and a partition of its float64 distances: 1.7 times the time for 700 positions,
since half as many of them fit in a vector register and they are twice as much to read (scipy 1.17.1, numpy 2.4.6,
2026-11-23).
"""

from __future__ import annotations

import numpy as np

from protgraph.structure.vectors import squared

__all__ = ["nearest_of_points"]

_EXTRA = 2  # candidates beyond k
_PRODUCT = 2**15  # distances at once; BLAS computes products of this size in one thread
_ERROR = 2.0**-18  # error of squared distances relative to the largest squared distance from the center; float32: 2⁻²⁴
_IN_MEMORY = 2**21  # distances in memory at once if ties require a full search


def nearest_of_points(
    points: np.ndarray, targets: np.ndarray, own: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest points of each target, except for the target itself.

    Parameters
    ----------
    points, targets : ndarray
        ``(M, 3)`` and ``(R, 3)`` float64, Å; the targets are some of the points.
    own : ndarray
        ``(R,)`` int64, index of each target among the points.
    k : int
        At least 1, at most M − 1.

    Returns
    -------
    nearest : ndarray
        ``(R, k)`` int64, indices of points by squared distance, ties by index.
    squares : ndarray
        ``(R,)`` float64, Å², squared distance of the k-th, correct to 13 digits.

    Notes
    -----
    Squared distances in float32 select k + 2 candidates. The k nearest are among them if the k-th of their exact
    distances is below the float32 distance of the last candidate by more than its error; otherwise all points are
    sorted. Floats ≥ 0 sort like their bits: they are sorted as integers with the index in the last bits. If two
    differ in these bits only, rounding may have decided their order, and a sort of the exact distances follows.
    """
    width = min(k + _EXTRA, len(points) - 1)
    candidates, beyond = _candidates(points, targets, own, width)  # (R, width), (R,)
    low = (1 << len(points).bit_length()) - 1
    key = _squared_distances(points, targets, candidates).view(np.int64)
    key &= ~low
    key |= candidates
    key.sort(axis=1)
    nearest, squares = key[:, :k] & low, key[:, k - 1].view(np.float64)
    is_close = (key[:, 1 : k + 1] - key[:, : min(k, width - 1)] <= 2 * low + 1).any(axis=1)
    if width < len(points) - 1:
        is_certain = squares < beyond
        is_close &= is_certain
        uncertain = np.flatnonzero(~is_certain)
        step = max(1, _IN_MEMORY // len(points))
        for start in range(0, len(uncertain), step):
            rows = uncertain[start : start + step]
            every = np.broadcast_to(np.arange(len(points)), (len(rows), len(points)))
            nearest[rows], squares[rows] = _sort_exactly(points, targets[rows], own[rows], every, k)
    rows = np.flatnonzero(is_close)
    if len(rows):
        nearest[rows], _ = _sort_exactly(points, targets[rows], own[rows], np.sort(candidates[rows], axis=1), k)
    return nearest, squares


def _candidates(points: np.ndarray, targets: np.ndarray, own: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest by float32 distances, ``(R, width)``, and a bound below the squares of the others, ``(R,)``.

    ``|x - y|² = |x|² + |y|² - 2 x·y`` is a product of matrices of five columns.
    """
    center = points.mean(axis=0)
    x, y = (targets - center).astype(np.float32), (points - center).astype(np.float32)
    norm = squared(y)
    left, right = np.ones((len(x), 5), np.float32), np.ones((5, len(y)), np.float32)
    left[:, :3], left[:, 3] = x * np.float32(-2), squared(x)
    right[:3], right[4] = y.T, norm
    low = np.int32((1 << len(points).bit_length()) - 1)
    index = np.arange(len(points), dtype=np.int32)
    candidates, beyond = np.empty((len(x), width), np.int64), np.empty(len(x), np.int32)
    step = max(1, _PRODUCT // len(points))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        squares = left[part] @ right  # (rows, M)
        squares[np.arange(len(squares)), own[part]] = np.inf
        key = squares.view(np.int32)
        key &= ~low
        key |= index
        key.partition(width - 1, axis=1)
        candidates[part], beyond[part] = key[:, :width], key[:, width - 1]
    candidates &= int(low)
    beyond &= ~low
    return candidates, beyond.view(np.float32) - _ERROR * float(norm.max())


def _squared_distances(points: np.ndarray, targets: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the values of :func:`~protgraph.structure.vectors.squared` to the candidates, ``(R, width)`` float64."""
    total = None
    for x, y in zip(np.ascontiguousarray(targets.T), np.ascontiguousarray(points.T), strict=True):
        difference = y[candidates]
        difference -= x[:, None]
        difference *= difference
        total = difference if total is None else np.add(total, difference, out=total)
    return total


def _sort_exactly(
    points: np.ndarray, targets: np.ndarray, own: np.ndarray, candidates: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest of the candidates ``(R, M)`` (ascending) and the square of the k-th, the row itself last."""
    squares = squared(targets[:, None] - points[candidates])
    squares[candidates == own[:, None]] = np.inf
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(squares, order[:, -1:], 1)[:, 0]
