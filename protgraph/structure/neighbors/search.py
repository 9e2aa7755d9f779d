"""Which residues are neighbors: nearest, within a radius, in atomic contact, along the sequence.

Every function returns ``(2, E)`` int64 edges j → i: source j in row 0, target i in row 1, ascending by target,
within a target by the distance of the positions, ties by source. No self loops, no duplicates, no cap on the
number of neighbors, and the same edges wherever the origin lies.

Notes
-----
A k-d tree (scipy), or for the nearest of up to 1000 positions all pairs, proposes; the squared distance
``dx² + dy² + dz²`` of float64 differences decides wherever that is close, so that the result equals a brute-force
search bit for bit, ties included. All pairs take less than half the tree's time at k = 30 (``protgraph speed
neighbors``): what is partitioned and sorted are values that carry their number, which numpy does with vector
instructions.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from protgraph.structure.vectors import squared

__all__ = ["to_undirected", "close_pairs", "contact", "knn", "radius", "sort_edges", "sequence"]

_MARGIN = 1e-9  # relative; far above the rounding of the tree's float64 distances, far below any real difference
_DENSE = 1000  # positions up to which all pairs are faster than a tree
_NUMBERS = 1024  # of positions, in the last ten bits of a float64: what is left of it tells 1 from 1 + 2e-13
_CACHED = 2**16  # distances that stay in a core's cache
_BLOCK = 2**21  # pairs whose distances are held at once where ties force a full search


def knn(pos: np.ndarray, k: int) -> np.ndarray:
    """The k nearest neighbors of every position.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å.
    k : int
        Neighbors of each; all N − 1 others where N is not above k.

    Returns
    -------
    ndarray
        ``(2, N·min(k, N − 1))`` int64. Of several neighbors at the k-th distance, the lower numbers are taken.

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
    width = min(k + 2, n)  # the node itself, k neighbors, and the next one: a tie with it must be seen
    candidates = np.sort(cKDTree(pos).query(pos, width)[1], axis=1)  # (N, width)
    nearest, d2 = _nearest(pos, np.arange(n), candidates)
    source = nearest[:, :k]
    if width < n:
        tied = d2[:, k - 1] >= d2[:, width - 2] * (1 - _MARGIN)
        _settle_ties(pos, np.flatnonzero(tied), source)
    return np.stack([source.ravel(), np.repeat(np.arange(n), k)])


def radius(pos: np.ndarray, cutoff: float) -> np.ndarray:
    """All pairs at most ``cutoff`` apart, both ways.

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
    """All pairs of residues of which any two atoms are at most ``cutoff`` apart, both ways.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions of the residues, Å, whose distance orders the edges.
    atom_pos : ndarray
        ``(A, 3)`` positions of the atoms, Å.
    atom_residue : ndarray
        ``(A,)`` int64, residue of each atom, ascending.
    cutoff : float
        Å, inclusive.

    Returns
    -------
    ndarray
        ``(2, E)`` int64. Neighbors in the chain are in contact through their peptide bond.
    """
    atom_pos = np.asarray(atom_pos, np.float64)
    a, b = atom_residue[close_pairs(atom_pos, cutoff)]
    pairs = np.unique((a * len(pos) + b)[a != b])
    return to_undirected(np.asarray(pos, np.float64), np.stack(np.divmod(pairs, len(pos))))


def sequence(pos: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray, k: int) -> np.ndarray:
    """All pairs of one chain whose sequence positions differ by at most ``k``, both ways.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions, Å, whose distance orders the edges.
    chain, seq_pos : ndarray
        ``(N,)`` int64, number of the chain and position along it, without duplicates.
    k : int
        Largest difference.

    Returns
    -------
    ndarray
        ``(2, E)`` int64. An unresolved gap that ``seq_pos`` counts separates its two ends.
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
    """``(2, P)`` pairs i < j of ``pos`` ``(N, 3)`` float64 at most ``cutoff`` apart, in no order."""
    if len(pos) == 0:
        return np.zeros((2, 0), np.int64)
    pairs = cKDTree(pos).query_pairs(cutoff * (1 + _MARGIN), output_type="ndarray").T
    return pairs[:, squared(pos[pairs[0]] - pos[pairs[1]]) <= cutoff * cutoff]


def to_undirected(pos: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Each pair in both directions, ``(2, P)`` to ``(2, 2P)``, in the order of this module."""
    return sort_edges(pos, np.concatenate([pairs, pairs[::-1]], axis=1))


def sort_edges(pos: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Edges ``(2, E)`` in the order of this module: by target, then distance of ``pos`` ``(N, 3)``, then source."""
    pos, (source, target) = np.asarray(pos, np.float64), found
    order = np.lexsort((source, squared(pos[source] - pos[target]), target))
    return np.stack([source[order], target[order]])


def _nearest(pos: np.ndarray, rows: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort each row's candidates (ascending numbers) by distance from ``pos[rows]``, the node itself last.

    ``(R,)`` and ``(R, M)`` to the sorted candidates and their squared distances, both ``(R, M)``.
    """
    d2 = squared(pos[rows, None] - pos[candidates])
    d2[candidates == rows[:, None]] = np.inf
    order = np.argsort(d2, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(d2, order, 1)


def _nearest_of_all(pos: np.ndarray, k: int) -> np.ndarray:
    """``(N, k)`` nearest of every position, from all pairs; the node itself is none.

    The bits of numbers ≥ 0 are in their order. So the squared distances are sorted as integers, with the node's number
    in the last bits; where two of the sorted are alike but for these, scipy's rounding may have decided, and a search
    over all nodes does.
    """
    n, numbers = len(pos), np.arange(len(pos))
    found = np.empty((n, k + 1), np.int64)
    step = max(1, _CACHED // n)
    for start in range(0, n, step):
        rows = numbers[start : start + step]
        d2 = cdist(pos[rows], pos, "sqeuclidean")  # (R, N)
        d2[rows - start, rows] = np.inf
        key = d2.view(np.int64)
        key &= -_NUMBERS
        key |= numbers
        key.partition(k, axis=1)
        found[rows] = key[:, : k + 1]
    found.sort(axis=1)
    source = found[:, :k] & (_NUMBERS - 1)
    close = found[:, 1:] - found[:, :-1] < 2 * _NUMBERS  # (N, k), of each to the next
    _settle_ties(pos, np.flatnonzero(close.any(axis=1)), source)
    return source


def _settle_ties(pos: np.ndarray, rows: np.ndarray, source: np.ndarray) -> None:
    """Write into ``source`` the neighbors of ``rows`` as a search over all nodes finds them."""
    everyone = np.arange(len(pos))[None]
    step = max(1, _BLOCK // len(pos))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        nearest, _ = _nearest(pos, block, np.repeat(everyone, len(block), 0))
        source[block] = nearest[:, : source.shape[1]]
