"""Clusters of homologs."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.similarity.homologs import Homologs

__all__ = ["cluster_homologs"]


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
    n = homologs.number
    ones = np.ones(len(homologs), bool)
    graph = coo_array((ones, (homologs.first, homologs.second)), shape=(n, n))
    component = connected_components(graph, directed=False)[1] if n else np.zeros(0, np.int64)
    _, first, label = np.unique(component, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]
