"""The k nearest neighbors of many positions, from all pairs of compact blocks of positions and what is around them.

Not scipy: blocks with candidates from ``cKDTree.query_ball_point``, a sphere around each block, take 1.3 times the time
for 10⁵ positions, and ``cKDTree.query`` six times that of all pairs for 200 (scipy 1.17.1, 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cbrt, inf, pi, prod

import numpy as np

from protgraph.structure.neighbors.all_pairs import nearest_of_points

__all__ = ["nearest_by_blocks"]

_BLOCK = 256  # positions of a block
_REACH = 1.15  # first guess of the distance to the k-th neighbor, relative to that in a block of uniform density
_PAIRS = 2**18  # rows × candidates up to which the second search does not divide a block further
_SMALLEST = 1e-3  # Å, least extent of a block for this guess
_MARGIN = 1e-9  # relative; far above the rounding of float64 distances, far below any real difference


@dataclass(frozen=True, eq=False)
class _Block:
    """Positions of which the nearest are searched, and the candidates: all positions of a region.

    ``rows`` ``(R,)`` indices of the positions, ``axes`` ``(3, R)`` their coordinates; ``index`` ``(M,)`` ascending and
    ``points`` ``(3, M)`` those of the candidates; ``low`` and ``high`` bounds of the region, Å, infinite where
    it contains all positions on this side.
    """

    rows: np.ndarray
    axes: np.ndarray
    index: np.ndarray
    points: np.ndarray
    low: tuple[float, ...]
    high: tuple[float, ...]


def nearest_by_blocks(pos: np.ndarray, k: int, out: np.ndarray) -> None:
    """Write the k nearest others of each position, ties by index, to ``out``.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` float64, Å.
    k : int
        At least 1, at most N − 1.
    out : ndarray
        ``(N, k)`` int64.

    Raises
    ------
    ValueError
        A position is not finite.

    Notes
    -----
    Positions are divided at the longest axis of their bounding box until a block has at most 256. Its candidates are
    all positions in this box enlarged by a radius on each side; each division keeps those of the larger block that are
    in reach. A row is final if its k-th neighbor is nearer than the surface of the enlarged box. For the other rows
    this distance is an upper bound, which is the radius of a second search. Its rows are few and far from each other:
    blocks are divided until rows × candidates are few too, or the time would grow with N².
    """
    axes = np.ascontiguousarray(pos.T)  # (3, N)
    if not np.isfinite(axes).all():
        row = int((~np.isfinite(pos)).any(axis=1).argmax())
        raise ValueError(f"position {row} is {pos[row].tolist()}. Positions must be finite.")
    rounding = 8 * np.finfo(np.float64).eps * float(np.abs(axes).max())  # Å, of sums of coordinates
    radii = _search(axes, np.arange(len(pos)), None, k, rounding, out)
    rows = np.flatnonzero(radii > 0)
    if len(rows):
        _search(axes, rows, radii, k, rounding, out)


def _search(
    axes: np.ndarray, rows: np.ndarray, radii: np.ndarray | None, k: int, rounding: float, out: np.ndarray
) -> np.ndarray:
    """Write the nearest of some rows; return the radii of the rows that are not final, ``(N,)``, 0 for all others.

    ``radii`` ``(N,)``, Å, are upper bounds of the distance to the k-th neighbor; None: they are guessed.
    """
    needed = np.zeros(axes.shape[1])
    for block in _blocks(axes, rows, radii, k, rounding):
        own = np.searchsorted(block.index, block.rows)
        nearest, squares = nearest_of_points(block.points.T, block.axes.T, own, k)
        out[block.rows] = block.index.take(nearest)
        if radii is None and (min(block.low) > -inf or max(block.high) < inf):
            distance = np.sqrt(squares)
            surface = np.full(len(own), inf)
            for along, low, high in zip(block.axes, block.low, block.high, strict=True):
                np.minimum(surface, np.minimum(along - low, high - along), out=surface)
            is_open = distance >= (surface - rounding) * (1 - _MARGIN)
            needed[block.rows[is_open]] = distance[is_open] * (1 + _MARGIN) + rounding
    return needed


def _blocks(axes: np.ndarray, rows: np.ndarray, radii: np.ndarray | None, k: int, rounding: float) -> Iterator[_Block]:
    """Yield compact blocks of rows with the positions around them."""
    size = max(_BLOCK, 2 * (k + 1))
    everything = (-inf,) * 3, (inf,) * 3
    pending = [_Block(rows, axes.take(rows, axis=1), np.arange(axes.shape[1]), axes, *everything)]
    while pending:
        block = pending.pop()
        first, last = block.axes.min(axis=1).tolist(), block.axes.max(axis=1).tolist()
        extents = [b - a for a, b in zip(first, last, strict=True)]
        if radii is None:
            volume = prod(max(extent, _SMALLEST) for extent in extents)
            radius = _REACH * cbrt(volume * (k + 1) / len(block.rows) * 0.75 / pi) + rounding
        else:
            radius = float(radii[block.rows].max())
        count = -(-len(block.rows) // size)
        if radii is not None and len(block.rows) * len(block.index) > _PAIRS:  # few rows, far from each other
            count = max(count, min(2, len(block.rows)))
        if count == 1:
            yield _cut(block, first, last, radius)
            continue
        axis, half = extents.index(max(extents)), len(block.rows) * (count // 2) // count
        along = block.axes[axis]
        order = np.argpartition(along, half)
        middle = float(along[order[half]])
        pending.append(_part(block, order[:half], axis, high=middle + radius))
        pending.append(_part(block, order[half:], axis, low=middle - radius))


def _part(block: _Block, order: np.ndarray, axis: int, *, low: float = -inf, high: float = inf) -> _Block:
    """Return a part of a block with the candidates between bounds of one axis."""
    rows, axes = block.rows.take(order), block.axes.take(order, axis=1)
    index, points, lows, highs = block.index, block.points, list(block.low), list(block.high)
    if low > lows[axis] or high < highs[axis]:
        near = np.flatnonzero(points[axis] >= low if low > -inf else points[axis] <= high)
        index, points = index.take(near), points.take(near, axis=1)
        lows[axis], highs[axis] = max(low, lows[axis]), min(high, highs[axis])
    return _Block(rows, axes, index, points, tuple(lows), tuple(highs))


def _cut(block: _Block, first: list[float], last: list[float], radius: float) -> _Block:
    """Return a block with its rows sorted and the candidates in its bounding box, enlarged by the radius."""
    order = np.argsort(block.rows)
    low = tuple(max(a - radius, bound) for a, bound in zip(first, block.low, strict=True))
    high = tuple(min(b + radius, bound) for b, bound in zip(last, block.high, strict=True))
    is_near = np.ones(len(block.index), bool)
    for points, a, b in zip(block.points, low, high, strict=True):
        is_near &= points >= a
        is_near &= points <= b
    near = np.flatnonzero(is_near)
    index, points = block.index.take(near), block.points.take(near, axis=1)
    return _Block(block.rows.take(order), block.axes.take(order, axis=1), index, points, low, high)
