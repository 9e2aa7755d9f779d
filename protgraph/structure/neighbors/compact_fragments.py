"""Move distant fragments of a structure together, so that cell lists stay small."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

__all__ = ["compact_fragments"]


def compact_fragments(pos: np.ndarray, gap: float) -> np.ndarray:
    """Move fragments that are more than ``gap`` apart side by side along x, ``gap`` apart.

    With one atom at 10⁵ Å, a grid over the bounding box exceeds any memory. Here the box grows by the size of each
    fragment. Distances within fragments do not change; those between fragments stay at or above ``gap``.

    Parameters
    ----------
    pos : ndarray
        ``(A, 3)`` positions, Å.
    gap : float
        Å; at least the longest distance of interest.

    Returns
    -------
    ndarray
        ``(A, 3)`` float64, Å, not negative.

    Examples
    --------
    >>> compact_fragments(np.array([[0.0, 0, 0], [1, 0, 0], [9e4, 9e4, 9e4]]), gap=5.0).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [6.0, 0.0, 0.0]]
    """
    pos = np.asarray(pos, np.float64)
    pairs = cKDTree(pos).query_pairs(gap, output_type="ndarray").T
    near = coo_array((np.ones(pairs.shape[1], bool), tuple(pairs)), shape=(len(pos), len(pos)))
    count, fragment = connected_components(near, directed=False)
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(low, fragment, pos)
    np.maximum.at(high, fragment, pos)
    width = high[:, 0] - low[:, 0] + gap
    shift = -low
    shift[:, 0] += np.cumsum(width) - width
    return pos + shift[fragment]
