"""Clusters of related chains."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.similarity.homologs import Homologs

__all__ = ["cluster_homologs", "cluster_pairs"]


def cluster_homologs(homologs: Homologs) -> np.ndarray:
    """Return the cluster of each sequence: chains that are linked by homologs, directly or through others.

    No two homologs are in different clusters, unlike those of a greedy method (MMseqs2, CD-HIT), whose clusters are
    smaller and may have homologs in others.

    Parameters
    ----------
    homologs : Homologs
        Result of :func:`~protgraph.similarity.find_homologs`.

    Returns
    -------
    ndarray
        ``(N,)`` int64, numbered in order of appearance.
    """
    return cluster_pairs(homologs.number, homologs.first, homologs.second)


def cluster_pairs(number: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the connected component of each item.

    Parameters
    ----------
    number : int
        Number of items.
    first, second : ndarray
        ``(P,)`` linked items.

    Returns
    -------
    ndarray
        ``(N,)`` int64, numbered in order of appearance.

    Examples
    --------
    >>> cluster_pairs(4, np.array([0]), np.array([2])).tolist()
    [0, 1, 0, 2]
    """
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(number, number))
    component = connected_components(graph, directed=False)[1] if number else np.zeros(0, np.int64)
    _, start, label = np.unique(component, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(start))[label]
