"""The k nearest among some points from all pairs: candidates in float32, their order in float64.

Rows of more than 512 distances are partitioned in parts of at most 256, whose smallest are partitioned again: NumPy
partitions rows of up to 512 with sorting networks, four times as fast per element where the processor has AVX-512.
"""

# Not scipy.spatial.distance.cdist and a partition in float64: 1.7 times the time (scipy 1.17.1, 2026-11-23).

from __future__ import annotations

import numpy as np

from protgraph.structure.vectors import squared

__all__ = ["nearest_of_points"]

_EXTRA = 2  # candidates beyond k
_PRODUCT = 2**15  # distances of a product; BLAS computes products of this size in one thread
_AT_ONCE = 2**17  # distances at once, 512 KiB
_NETWORK = 512  # most elements that NumPy partitions with a sorting network, in a fifth of the time of a longer row
_GROUP = 256  # elements of a group of a longer row
_ERROR = 2.0**-18  # error of squared distances relative to the largest squared distance from the center; float32: 2⁻²⁴
_FAR = np.float32(1e38)  # Å², larger than all distances; not infinite: BLAS multiplies it by 0 in rows that it adds
_IN_MEMORY = 2**21  # distances in memory at once if ties require a full search


def nearest_of_points(
    points: np.ndarray, targets: np.ndarray, target_index: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest points of each target, except for the target itself.

    ``points``, ``targets``: ``(M, 3)`` and ``(R, 3)`` float64, Å; the targets are some of the points.
    ``target_index``: ``(R,)`` int64, index of each target among the points.
    Returns ``nearest``: ``(R, k)`` int64, indices of points by squared distance, ties by index. ``squares``: ``(R,)``
    float64, Å², squared distance of the k-th, correct to 13 digits.

    Squared distances in float32 select k + 2 candidates. The k nearest are among them if the k-th of their exact
    distances is below the float32 distance of the last candidate by more than its error; otherwise all points are
    sorted. Floats ≥ 0 sort like their bits: they are sorted as integers with the index in the last bits. If two
    differ in these bits only, rounding may have decided their order, and a sort of the exact distances follows.
    """
    width = min(k + _EXTRA, len(points) - 1)
    axes = np.ascontiguousarray(points.T)  # (3, M)
    target_axes = axes if targets is points else np.ascontiguousarray(targets.T)  # (3, R)
    candidates, beyond = _candidates(axes, target_axes, target_index, width)  # (R, width), (R,)
    low = (1 << len(points).bit_length()) - 1  # the bits of an index
    key = _squared_distances(axes, target_axes, candidates).view(np.int64)
    key &= ~low
    key |= candidates
    key.sort(axis=1)
    nearest = key[:, :k] & low
    squares = key[:, k - 1].view(np.float64)
    is_close = _has_close_calls(key, min(k, width - 1), low)

    if width < len(points) - 1:  # there are others than the candidates
        is_certain = squares < beyond
        is_close &= is_certain
        uncertain = np.flatnonzero(~is_certain)
        step = max(1, _IN_MEMORY // len(points))
        for start in range(0, len(uncertain), step):
            rows = uncertain[start : start + step]
            every = np.broadcast_to(np.arange(len(points)), (len(rows), len(points)))
            nearest[rows], squares[rows] = _sort_exactly(points, targets[rows], target_index[rows], every, k)

    rows = np.flatnonzero(is_close)
    if len(rows):
        ascending = np.sort(candidates[rows], axis=1)
        nearest[rows], _ = _sort_exactly(points, targets[rows], target_index[rows], ascending, k)
    return nearest, squares


def _has_close_calls(key: np.ndarray, gaps: int, low: int) -> np.ndarray:
    """Return True for rows ``(R,)`` of sorted keys in which two neighbors may differ in the bits of the index only.

    ``gaps``: number of neighbors in each row that are compared; ``low``: the bits of the index.
    """
    is_close = np.zeros(len(key), bool)
    if gaps:
        difference = key[:, 1 : gaps + 1] - key[:, :gaps]
        close_gaps = np.flatnonzero(difference <= 2 * low + 1)
        is_close[close_gaps // gaps] = True
    return is_close


def _candidates(
    axes: np.ndarray, target_axes: np.ndarray, target_index: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest by float32 distances, ``(R, width)``, and a bound below the squares of the others, ``(R,)``.

    ``|x - y|² = |x|² + |y|² - 2 x·y`` is a product of matrices with five rows: x, |x|², 1 and −2 y, 1, |y|².
    """
    size = axes.shape[1]
    count = target_axes.shape[1]
    num_groups = _num_groups(size, width)
    columns = _round_up(size, num_groups)  # the points, and some infinitely far away
    rows = min(count, max(1, _PRODUCT // columns))  # of a product

    # the two matrices, of positions relative to the center
    center = axes.sum(axis=1, keepdims=True) / size  # (3, 1)
    right = np.zeros((5, columns), np.float32)
    left = np.zeros((5, _round_up(count, rows)), np.float32)
    _set_positions(right[:, :size], axes - center, norm=4)
    _set_positions(left[:, :count], target_axes - center, norm=3)
    right[3] = 1
    left[4] = 1
    error = _ERROR * float(right[4].max())
    right[:3] *= -2
    right[4, size:] = _FAR

    # squared distances with the index in their last bits, some products at a time
    low = np.int32((1 << columns.bit_length()) - 1)
    index = np.arange(columns, dtype=np.int32)
    candidates = np.empty((count, width), np.int64)
    beyond = np.empty(count, np.int32)
    products = left.T.reshape(-1, rows, 5)
    step = max(1, _AT_ONCE // (rows * columns))
    for first in range(0, len(products), step):
        start = first * rows
        squares = (products[first : first + step] @ right).reshape(-1, columns)
        squares = squares[: count - start]  # (rows, columns), without the rows that fill up
        target_rows = slice(start, start + len(squares))
        squares[np.arange(len(squares)), target_index[target_rows]] = np.inf
        key = squares.view(np.int32)
        key &= ~low
        key |= index
        key = _smallest(key, width, num_groups)
        np.bitwise_and(key, low, out=candidates[target_rows])
        beyond[target_rows] = key[:, -1]
    if columns > size:
        np.minimum(candidates, size - 1, out=candidates)  # of squares that overflow; no such row is certain
    beyond &= ~low
    return candidates, beyond.view(np.float32) - error


def _round_up(size: int, factor: int) -> int:
    """Return the smallest multiple of a factor that is not below a size."""
    return -(-size // factor) * factor


def _set_positions(matrix: np.ndarray, positions: np.ndarray, norm: int) -> None:
    """Write positions ``(3, M)`` into the first rows of a matrix ``(5, M)``, and their squared lengths into another."""
    matrix[:3] = positions
    np.einsum("ij,ij->j", matrix[:3], matrix[:3], out=matrix[norm])


def _num_groups(size: int, width: int) -> int:
    """Return the number of groups in which rows are partitioned: NumPy's sorting networks have at most 512 elements."""
    fits_into_network = size <= _NETWORK
    saves_nothing = 2 * width > _GROUP
    if fits_into_network or saves_nothing:
        return 1
    return -(-size // _GROUP)


def _smallest(key: np.ndarray, width: int, num_groups: int) -> np.ndarray:
    """Return the smallest elements of each row in any order, the largest of them last, ``(rows, width)``.

    The smallest of a row are among the smallest of its groups. ``key`` is partitioned in place.
    """
    if num_groups > 1:
        groups = key.reshape(len(key), num_groups, -1)
        groups.partition(width - 1, axis=2)
        key = groups[:, :, :width].reshape(len(key), -1)
    key.partition(width - 1, axis=1)
    return key[:, :width]


def _squared_distances(axes: np.ndarray, target_axes: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the values of :func:`~protgraph.structure.vectors.squared` to the candidates, ``(R, width)`` float64."""
    total: np.ndarray | None = None
    for x, y in zip(target_axes, axes, strict=True):
        difference = y.take(candidates)
        difference -= x[:, None]
        difference *= difference
        if total is None:
            total = difference
        else:
            total += difference
    assert total is not None  # there are three axes
    return total


def _sort_exactly(
    points: np.ndarray, targets: np.ndarray, target_index: np.ndarray, candidates: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest of the candidates ``(R, M)`` (ascending) and the square of the k-th, the row itself last."""
    squares = squared(targets[:, None] - points[candidates])
    is_target = candidates == target_index[:, None]
    squares[is_target] = np.inf
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    nearest = np.take_along_axis(candidates, order, 1)
    last = np.take_along_axis(squares, order[:, -1:], 1)
    return nearest, last[:, 0]
