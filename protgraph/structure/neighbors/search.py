"""Neighbor search: nearest, within a radius, in atomic contact, along the sequence.

Every function returns edges ``(2, E)`` int64 from source j (row 0) to target i (row 1), sorted by target, then by
distance of the positions, then by source. There are no self loops, no duplicates and no limit on the number of
neighbors, and the edges do not depend on the origin.

Pairs within a distance come from a k-d tree (scipy). The k nearest neighbors of up to 1000 positions come from all
pairs (:mod:`~protgraph.structure.neighbors.all_pairs`), a sixth of the time of the tree for 200 positions (``python -m
benchmarks neighbors``); those of more positions from the tree, with more candidates where the last one may be as near
as the k-th. Close calls are decided by the squared distance ``dx² + dy² + dz²`` of float64 differences, so that the
result equals a brute-force search bit for bit, ties included.
"""

# Not scipy alone: cKDTree.query breaks ties in no defined order (1.17.1). Not biotite's CellList: no k-nearest search.

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from protgraph.structure.neighbors.all_pairs import nearest_of_points
from protgraph.structure.vectors import squared

__all__ = [
    "argsort_edges",
    "close_pairs",
    "close_pairs_between",
    "compact_fragments",
    "contact",
    "knn",
    "knn_between",
    "radius",
    "sequence",
    "sort_edges",
    "to_undirected",
]

_MARGIN = 1e-9  # relative; far above the rounding of the tree's float64 distances, far below any real difference
_ALL_PAIRS = 1000  # largest number of positions for which all pairs are faster than the tree
_MORE = 4  # candidates beyond k, for ties
_CANDIDATES = 2**20  # rows × candidates at once, for the memory


def knn(pos: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest neighbors of each position.

    ``pos``: ``(N, 3)`` positions, Å. ``k``: neighbors per position; all N − 1 others if N ≤ k. Returns ``(2, N·min(k, N
    − 1))`` int64. Ties at the k-th distance go to the lower indices.

    Examples
    --------
    >>> knn(np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]), k=1)
    array([[1, 0, 1],
           [0, 1, 2]])
    """
    n = len(pos)
    pos = np.asarray(pos, np.float64)
    k = min(k, n - 1)
    if k < 1:
        return np.zeros((2, 0), np.int64)
    edges = np.empty((2, n, k), np.int64)
    if n <= max(_ALL_PAIRS, 4 * k):
        edges[0] = nearest_of_points(pos, pos, np.arange(n), k)[0]
    else:
        _nearest_by_tree(pos, k, edges[0])
    edges[1] = np.arange(n)[:, None]
    return edges.reshape(2, -1)


def _nearest_by_tree(pos: np.ndarray, k: int, out: np.ndarray) -> None:
    """Write the k nearest others of each position ``pos (N, 3)``, ties by index, to ``out (N, k)`` int64."""
    tree = cKDTree(pos)
    candidates = k + 1 + _MORE  # one of them is the position itself
    rows = np.arange(len(pos))
    while len(rows):
        candidates = min(candidates, len(pos))
        remaining = []
        step = max(1, _CANDIDATES // candidates)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            near = tree.query(pos[some], candidates)[1]  # (R, candidates)
            square = squared(pos[near] - pos[some, None])
            square[near == some[:, None]] = np.inf
            order = np.lexsort((near, square), axis=1)
            near = np.take_along_axis(near, order, 1)
            square = np.take_along_axis(square, order, 1)
            out[some] = near[:, :k]
            # Another position may be as near as the k-th neighbor if the last candidate is.
            if candidates < len(pos):
                is_open = square[:, k - 1] >= square[:, -2] * (1 - _MARGIN)
                remaining.append(some[is_open])
        rows = np.concatenate(remaining) if remaining else rows[:0]
        candidates *= 2


def radius(pos: np.ndarray, cutoff: float) -> np.ndarray:
    """Return all pairs at most ``cutoff`` apart, in both directions.

    ``pos``: ``(N, 3)`` positions, Å. ``cutoff``: Å, inclusive. Returns ``(2, E)`` int64.
    """
    pos = np.asarray(pos, np.float64)
    return to_undirected(pos, close_pairs(pos, cutoff))


def contact(pos: np.ndarray, atom_pos: np.ndarray, atom_residue: np.ndarray, cutoff: float) -> np.ndarray:
    """Return all pairs of residues with any two atoms at most ``cutoff`` apart, in both directions.

    ``pos``: ``(N, 3)`` positions of the residues, Å, for the order of edges. ``atom_pos``: ``(A, 3)`` positions of the
    atoms, Å. ``atom_residue``: ``(A,)`` int64, residue of each atom, ascending. ``cutoff``: Å, inclusive. Returns ``(2,
    E)`` int64. Consecutive residues are in contact through their peptide bond.
    """
    atom_pairs = close_pairs(np.asarray(atom_pos, np.float64), cutoff)
    first, second = atom_residue[atom_pairs]
    is_between = first != second
    number_of_pair = first * len(pos) + second
    different = np.unique(number_of_pair[is_between])
    pairs = np.stack(np.divmod(different, len(pos)))
    return to_undirected(np.asarray(pos, np.float64), pairs)


def sequence(pos: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray, k: int) -> np.ndarray:
    """Return all pairs of one chain whose sequence positions differ by at most ``k``, in both directions.

    ``pos``: ``(N, 3)`` positions, Å, for the order of edges. ``chain``, ``seq_pos``: ``(N,)`` int64, index of the chain
    and position along it, without duplicates. ``k``: largest difference. Returns ``(2, E)`` int64. Unresolved residues
    included in ``seq_pos`` increase the difference.
    """
    n = len(pos)
    order = np.lexsort((seq_pos, chain))
    chain = chain[order]
    seq_pos = seq_pos[order]
    # each residue of the sorted chains with the k residues after it
    steps = np.arange(1, min(k, n) + 1)
    first = np.repeat(np.arange(n), len(steps))
    second = first + np.tile(steps, n)
    exists = second < n
    first = first[exists]
    second = second[exists]
    is_same_chain = chain[first] == chain[second]
    is_near = seq_pos[second] - seq_pos[first] <= k
    pairs = np.stack([first, second])[:, is_same_chain & is_near]
    return to_undirected(np.asarray(pos, np.float64), order[pairs])


def close_pairs(pos: np.ndarray, cutoff: float) -> np.ndarray:
    """Return pairs i < j of ``pos`` ``(N, 3)`` float64 at most ``cutoff`` apart, unsorted, ``(2, P)``."""
    if len(pos) == 0:
        return np.zeros((2, 0), np.int64)
    pairs = cKDTree(pos).query_pairs(cutoff * (1 + _MARGIN), output_type="ndarray").T
    first, second = pairs
    is_close = squared(pos[first] - pos[second]) <= cutoff * cutoff
    return pairs[:, is_close]


def close_pairs_between(first: np.ndarray, second: np.ndarray, cutoff: float) -> np.ndarray:
    """Return pairs of ``first`` ``(M, 3)`` and ``second`` ``(L, 3)`` at most ``cutoff`` apart, ``(2, P)`` int64."""
    if len(first) == 0 or len(second) == 0:
        return np.zeros((2, 0), np.int64)
    first = first.astype(np.float64)
    second = second.astype(np.float64)
    tree = cKDTree(first)
    near = tree.sparse_distance_matrix(cKDTree(second), cutoff * (1 + _MARGIN), output_type="ndarray")
    pairs = np.stack([near["i"], near["j"]]).astype(np.int64)
    is_close = squared(first[pairs[0]] - second[pairs[1]]) <= cutoff * cutoff
    return pairs[:, is_close]


def to_undirected(pos: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return ``pairs (2, P)`` in both directions, ``(2, 2P)``, in the order of this module for ``pos (N, 3)``, Å."""
    return sort_edges(pos, np.concatenate([pairs, pairs[::-1]], axis=1))


def knn_between(sources: np.ndarray, targets: np.ndarray, k: int) -> np.ndarray:
    """Return edges from the k nearest sources to each target.

    ``sources``, ``targets``: ``(M, 3)`` and ``(R, 3)`` positions, Å. ``k``: sources per target; all M if M ≤ k. Returns
    ``(2, R·min(k, M))`` int64, in the order of this module. Ties at the k-th distance go to the lower indices.

    Examples
    --------
    >>> knn_between(np.array([[0.0, 0, 0], [5, 0, 0]]), np.array([[1.0, 0, 0], [4, 0, 0], [9, 0, 0]]), k=1)
    array([[0, 1, 1],
           [0, 1, 2]])
    """
    k = min(k, len(sources))
    if k < 1 or len(targets) == 0:
        return np.zeros((2, 0), np.int64)
    sources = np.asarray(sources, np.float64)
    targets = np.asarray(targets, np.float64)
    tree = cKDTree(sources)
    distance_of_kth, _ = tree.query(targets, [k])  # (R, 1)
    near = tree.query_ball_point(targets, distance_of_kth[:, 0] * (1 + _MARGIN))

    # Candidates of each target, sorted; the first k of them are its neighbors.
    counts = np.array([len(candidates) for candidates in near])
    source = np.concatenate(near)
    target = np.repeat(np.arange(len(targets)), counts)
    pairs = sort_edges(targets, np.stack([source, target]).astype(np.int64), sources)
    first_of_target = np.cumsum(counts) - counts
    rank = np.arange(len(target)) - np.repeat(first_of_target, counts)
    return pairs[:, rank < k]


def sort_edges(pos: np.ndarray, edges: np.ndarray, source_pos: np.ndarray | None = None) -> np.ndarray:
    """Sort ``edges (2, E)`` by target, then by distance, then by source, to the same shape.

    ``pos``: ``(N, 3)`` positions, Å, of targets and sources; ``source_pos``: ``(M, 3)`` those of the sources, if these
    are others.
    """
    return np.take(edges, argsort_edges(pos, edges, source_pos), axis=1)


def argsort_edges(pos: np.ndarray, edges: np.ndarray, source_pos: np.ndarray | None = None) -> np.ndarray:
    """Return the order, ``(E,)`` int64, in which :func:`sort_edges` puts edges ``(2, E)`` of positions, Å."""
    pos = np.asarray(pos, np.float64)
    source, target = edges
    from_pos = pos if source_pos is None else np.asarray(source_pos, np.float64)
    square = squared(from_pos[source] - pos[target])
    return np.lexsort((source, square, target))


# --- distant fragments -----------------------------------------------------------------------------------------------


def compact_fragments(pos: np.ndarray, gap: float) -> np.ndarray:
    """Move fragments that are more than ``gap`` apart side by side along x, ``gap`` apart.

    With one atom at 10⁵ Å, a grid over the bounding box exceeds any memory. Here the box grows by the size of each
    fragment. Distances within fragments do not change; those between fragments stay at or above ``gap``.

    ``pos``: ``(A, 3)`` positions, Å. ``gap``: Å; at least the longest distance of interest. Returns ``(A, 3)`` float64,
    Å, not negative.

    Examples
    --------
    >>> compact_fragments(np.array([[0.0, 0, 0], [1, 0, 0], [9e4, 9e4, 9e4]]), gap=5.0).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [6.0, 0.0, 0.0]]
    """
    pos = np.asarray(pos, np.float64)
    pairs = cKDTree(pos).query_pairs(gap, output_type="ndarray").T
    ones = np.ones(pairs.shape[1], bool)
    is_near = coo_array((ones, tuple(pairs)), shape=(len(pos), len(pos)))
    count, fragment = connected_components(is_near, directed=False)

    # Box of each fragment, and its place along x.
    low = np.full((count, 3), np.inf)
    high = np.full((count, 3), -np.inf)
    np.minimum.at(low, fragment, pos)
    np.maximum.at(high, fragment, pos)
    width = high[:, 0] - low[:, 0] + gap
    shift = -low
    shift[:, 0] += np.cumsum(width) - width
    return pos + shift[fragment]
