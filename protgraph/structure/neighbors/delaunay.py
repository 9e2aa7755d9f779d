"""Delaunay neighbors, also of coplanar and collinear points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.spatial import Delaunay

__all__ = ["delaunay"]

_FLAT = 1e-6  # relative to the largest extent; smaller extents are rounding errors of float32 coordinates


def delaunay(pos: np.ndarray) -> np.ndarray:
    """Return pairs joined in the Delaunay triangulation: some empty sphere passes through both.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å.

    Returns
    -------
    ndarray
        ``(2, P)`` int64 pairs i < j.

    Notes
    -----
    Coplanar points are triangulated in their plane, collinear points are joined in order. Of coincident points, the
    lowest index takes part, and the others are joined to it only. For more than four points on one empty sphere, the
    triangulation is not unique and follows Qhull.

    Examples
    --------
    >>> delaunay(np.array([[0.0, 0, 0], [3, 0, 0], [1, 0, 0]])).tolist()
    [[0, 1], [2, 2]]
    """
    if len(pos) == 0:
        return np.zeros((2, 0), np.int64)
    pos = np.asarray(pos, np.float64)
    pos = pos - pos.mean(0)
    points, first, point = np.unique(pos, axis=0, return_index=True, return_inverse=True)
    first_of_row = first[point.ravel()]  # (N,) lowest index at the same place
    copies = np.flatnonzero(first_of_row != np.arange(len(pos)))
    coincident = np.stack([first_of_row[copies], copies])
    pairs = np.concatenate([first[_triangulated(points)], coincident], axis=1)
    return np.unique(np.sort(pairs, axis=0), axis=1)


def _triangulated(points: np.ndarray) -> np.ndarray:
    """Return pairs ``(2, M)`` of distinct points."""
    n = len(points)
    _, extent, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    rank = int((extent > _FLAT * extent.max(initial=0)).sum())
    if n <= rank + 1:  # a simplex
        return np.array(list(combinations(range(n), 2)), np.int64).reshape(-1, 2).T
    if rank == 1:
        order = np.argsort(points @ axes[0], kind="stable")
        return np.stack([order[:-1], order[1:]])
    if rank < 3:  # in the plane of the points
        points = points @ axes[:rank].T
    simplices = Delaunay(points).simplices.astype(np.int64)  # (S, rank + 1)
    edges = [simplices[:, [i, j]] for i, j in combinations(range(rank + 1), 2)]
    return np.concatenate(edges).T
