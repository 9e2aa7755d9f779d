"""Far-apart parts of a structure drawn together, for searches on a grid that would fill the space between them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

__all__ = ["compact_fragments"]


def compact_fragments(pos: np.ndarray, gap: float) -> np.ndarray:
    """The same points, with parts that are more than ``gap`` apart moved side by side along x, ``gap`` apart.

    One atom at 10⁵ Å makes a grid of cells over the whole box larger than any memory; drawn together, the box grows by
    one island's size an island. Nothing changes within an island, and nothing comes nearer than ``gap``.

    Parameters
    ----------
    pos : ndarray
        ``(A, 3)`` positions, Å.
    gap : float
        Å; no shorter than the longest distance that matters.

    Returns
    -------
    ndarray
        ``(A, 3)`` float64, Å, none negative.

    Examples
    --------
    >>> draw_together(np.array([[0.0, 0, 0], [1, 0, 0], [9e4, 9e4, 9e4]]), gap=5.0).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [6.0, 0.0, 0.0]]
    """
    pos = np.asarray(pos, np.float64)
    pairs = cKDTree(pos).query_pairs(gap, output_type="ndarray").T
    near = coo_array((np.ones(pairs.shape[1], bool), tuple(pairs)), shape=(len(pos), len(pos)))
    count, island = connected_components(near, directed=False)
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(low, island, pos)
    np.maximum.at(high, island, pos)
    width = high[:, 0] - low[:, 0] + gap
    shift = -low
    shift[:, 0] += np.cumsum(width) - width
    return pos + shift[island]
