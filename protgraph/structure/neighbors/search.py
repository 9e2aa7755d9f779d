"""Neighbor search: nearest, within a radius, in atomic contact, along the sequence.

Every function returns edges ``(2, E)`` int64 from source j (row 0) to target i (row 1), sorted by target, then by
distance of the positions, then by source. There are no self loops, no duplicates and no limit on the number of
neighbors, and the edges do not depend on the origin.

Notes
-----
Candidates come from a k-d tree (scipy) or, for k nearest neighbors of up to 1000 positions, from all pairs. Close calls
are decided by the squared distance ``dx² + dy² + dz²`` of float64 differences, so that the result equals a brute-force
search bit for bit, ties included. At k = 30, all pairs take less than half the time of the tree (``protgraph speed
neighbors``), because NumPy partitions and sorts them as integers that include the index.

Not scipy alone: ``cKDTree.query`` breaks ties in no defined order (scipy 1.17.1, 2026-11-22). Not biotite: ``CellList``
has no k-nearest search (biotite 1.6.0, 2026-11-22).
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from protgraph.structure.vectors import squared

__all__ = [
    "argsort_edges",
    "close_pairs",
    "close_pairs_between",
    "contact",
    "knn",
    "radius",
    "sequence",
    "sort_edges",
    "to_undirected",
]

_MARGIN = 1e-9  # relative; far above the rounding of the tree's float64 distances, far below any real difference
_DENSE = 1000  # largest number of positions for which all pairs are faster than a tree
_INDICES = 1024  # indices fit in the last ten bits of a float64; the others resolve a relative difference of 2e-13
_CACHED = 2**16  # distances that fit in the cache of a core
_BLOCK = 2**21  # distances in memory at once if ties require a full search


def knn(pos: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest neighbors of each position.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å.
    k : int
        Neighbors per position; all N − 1 others if N ≤ k.

    Returns
    -------
    ndarray
        ``(2, N·min(k, N − 1))`` int64. Ties at the k-th distance go to the lower indices.

    Examples
    --------
    >>> knn(np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]), k=1)
    array([[1, 0, 1],
           [0, 1, 2]])
    """
    n, pos = len(pos), np.asarray(pos, np.float64)
    k = min(k, n - 1)
    if k < 1:
        return np.zeros((2, 0), np.int64)
    if n <= _DENSE:
        return np.stack([_nearest_of_all(pos, k).ravel(), np.repeat(np.arange(n), k)])
    width = min(k + 2, n)  # the node itself, k neighbors, and the next one to detect a tie
    candidates = np.sort(cKDTree(pos).query(pos, width)[1], axis=1)  # (N, width)
    nearest, d2 = _nearest(pos, np.arange(n), candidates)
    source = nearest[:, :k]
    if width < n:
        tied = d2[:, k - 1] >= d2[:, width - 2] * (1 - _MARGIN)
        _settle_ties(pos, np.flatnonzero(tied), source)
    return np.stack([source.ravel(), np.repeat(np.arange(n), k)])


def radius(pos: np.ndarray, cutoff: float) -> np.ndarray:
    """Return all pairs at most ``cutoff`` apart, in both directions.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å.
    cutoff : float
        Å, inclusive.

    Returns
    -------
    ndarray
        ``(2, E)`` int64.
    """
    pos = np.asarray(pos, np.float64)
    return to_undirected(pos, close_pairs(pos, cutoff))


def contact(pos: np.ndarray, atom_pos: np.ndarray, atom_residue: np.ndarray, cutoff: float) -> np.ndarray:
    """Return all pairs of residues with any two atoms at most ``cutoff`` apart, in both directions.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions of the residues, Å, for the order of edges.
    atom_pos : ndarray
        ``(A, 3)`` positions of the atoms, Å.
    atom_residue : ndarray
        ``(A,)`` int64, residue of each atom, ascending.
    cutoff : float
        Å, inclusive.

    Returns
    -------
    ndarray
        ``(2, E)`` int64. Consecutive residues are in contact through their peptide bond.
    """
    atom_pos = np.asarray(atom_pos, np.float64)
    a, b = atom_residue[close_pairs(atom_pos, cutoff)]
    pairs = np.unique((a * len(pos) + b)[a != b])
    return to_undirected(np.asarray(pos, np.float64), np.stack(np.divmod(pairs, len(pos))))


def sequence(pos: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray, k: int) -> np.ndarray:
    """Return all pairs of one chain whose sequence positions differ by at most ``k``, in both directions.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å, for the order of edges.
    chain, seq_pos : ndarray
        ``(N,)`` int64, index of the chain and position along it, without duplicates.
    k : int
        Largest difference.

    Returns
    -------
    ndarray
        ``(2, E)`` int64. Unresolved residues included in ``seq_pos`` increase the difference.
    """
    n = len(pos)
    order = np.lexsort((seq_pos, chain))
    chain, seq_pos = chain[order], seq_pos[order]
    first = np.arange(n)[:, None]
    second = first + np.arange(1, min(k, n) + 1)  # (N, k)
    first, second = (x[second < n] for x in np.broadcast_arrays(first, second))
    near = (chain[first] == chain[second]) & (seq_pos[second] - seq_pos[first] <= k)
    return to_undirected(np.asarray(pos, np.float64), order[np.stack([first[near], second[near]])])


def close_pairs(pos: np.ndarray, cutoff: float) -> np.ndarray:
    """Return pairs i < j of ``pos`` ``(N, 3)`` float64 at most ``cutoff`` apart, unsorted, ``(2, P)``."""
    if len(pos) == 0:
        return np.zeros((2, 0), np.int64)
    pairs = cKDTree(pos).query_pairs(cutoff * (1 + _MARGIN), output_type="ndarray").T
    return pairs[:, squared(pos[pairs[0]] - pos[pairs[1]]) <= cutoff * cutoff]


def close_pairs_between(some: np.ndarray, others: np.ndarray, cutoff: float) -> np.ndarray:
    """Return pairs i, j of ``some`` ``(M, 3)`` and ``others`` ``(L, 3)`` at most ``cutoff`` apart, ``(2, P)`` int64."""
    if len(some) == 0 or len(others) == 0:
        return np.zeros((2, 0), np.int64)
    some, others = some.astype(np.float64), others.astype(np.float64)
    near = cKDTree(some).sparse_distance_matrix(cKDTree(others), cutoff * (1 + _MARGIN), output_type="ndarray")
    pairs = np.stack([near["i"], near["j"]]).astype(np.int64)
    return pairs[:, squared(some[pairs[0]] - others[pairs[1]]) <= cutoff * cutoff]


def to_undirected(pos: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return each pair in both directions, ``(2, P)`` to ``(2, 2P)``, in the order of this module."""
    return sort_edges(pos, np.concatenate([pairs, pairs[::-1]], axis=1))


def sort_edges(pos: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sort edges ``(2, E)`` by target, then by distance of ``pos`` ``(N, 3)``, then by source."""
    return np.take(edges, argsort_edges(pos, edges), axis=1)


def argsort_edges(pos: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the order, ``(E,)`` int64, in which :func:`sort_edges` puts edges."""
    pos, (source, target) = np.asarray(pos, np.float64), edges
    return np.lexsort((source, squared(pos[source] - pos[target]), target))


def _nearest(pos: np.ndarray, rows: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort the candidates ``(R, M)`` (ascending) of each row by distance from ``pos[rows]``, the node itself last.

    Returns the sorted candidates and their squared distances, both ``(R, M)``.
    """
    d2 = squared(pos[rows, None] - pos[candidates])
    d2[candidates == rows[:, None]] = np.inf
    order = np.argsort(d2, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(d2, order, 1)


def _nearest_of_all(pos: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest others of each position from all pairs, ``(N, k)``.

    Floats ≥ 0 sort like their bits. So squared distances are sorted as integers with the index in the last bits. If two
    differ in these bits only, rounding may have decided their order, and a search over all nodes replaces the row.
    """
    n, index = len(pos), np.arange(len(pos))
    nearest = np.empty((n, k + 1), np.int64)
    step = max(1, _CACHED // n)
    for start in range(0, n, step):
        rows = index[start : start + step]
        d2 = cdist(pos[rows], pos, "sqeuclidean")  # (R, N)
        d2[rows - start, rows] = np.inf
        key = d2.view(np.int64)
        key &= -_INDICES
        key |= index
        key.partition(k, axis=1)
        nearest[start : start + step] = key[:, : k + 1]
    nearest.sort(axis=1)
    source = nearest[:, :k] & (_INDICES - 1)
    close = nearest[:, 1:] - nearest[:, :-1] < 2 * _INDICES  # (N, k), to the next one
    _settle_ties(pos, np.flatnonzero(close.any(axis=1)), source)
    return source


def _settle_ties(pos: np.ndarray, rows: np.ndarray, source: np.ndarray) -> None:
    """Write the neighbors of ``rows`` by a search over all nodes into ``source``."""
    all_nodes = np.arange(len(pos))[None]
    step = max(1, _BLOCK // len(pos))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        nearest, _ = _nearest(pos, block, np.repeat(all_nodes, len(block), 0))
        source[block] = nearest[:, : source.shape[1]]
