"""Nearest residues by the distance of their closest atoms, or with a minimum sequence separation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from protgraph.structure.neighbors.search import close_pairs, knn, sort_edges
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import squared

__all__ = ["distant_knn", "knn_by_atoms"]

_BLOCK = 2**21  # distances in memory at once


def distant_knn(residues: Residues, k: int, separation: int) -> np.ndarray:
    """Return the k nearest CA of each residue in other chains or at least ``separation`` positions away.

    Parameters
    ----------
    k : int
        Neighbors per residue; fewer if fewer are allowed.
    separation : int
        Positions along the chain.

    Returns
    -------
    ndarray
        ``(2, E)`` int64, in the order of :mod:`protgraph.structure.neighbors.search`. Ties at the k-th distance go to
        the lower indices.
    """
    # positions along a chain are unique: at most 2 (separation - 1) residues are excluded
    source, target = knn(residues.pos, k + 2 * max(separation - 1, 0))
    chain, seq_pos = residues.chain_number, residues.seq_pos
    allowed = (chain[source] != chain[target]) | (np.abs(seq_pos[source] - seq_pos[target]) >= separation)
    return _first_k(source[allowed], target[allowed], k)


def knn_by_atoms(
    pos: np.ndarray, atom_pos: np.ndarray, atom_residue: np.ndarray, k: int, *, reach: float = 8.0
) -> np.ndarray:
    """Return the k nearest residues of each, by the distance of the closest two atoms.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` positions of the residues, Å, for the order of edges.
    atom_pos, atom_residue : ndarray
        Atoms: ``(A, 3)``, Å, and ``(A,)`` int64 ascending.
    k : int
        Neighbors per residue; all N − 1 others if N ≤ k.
    reach : float
        Initial radius of the search, Å; it does not change the edges.

    Returns
    -------
    ndarray
        ``(2, N·min(k, N − 1))`` int64. Ties at the k-th distance go to the lower indices.
    """
    n, atom_pos = len(pos), np.asarray(atom_pos, np.float64)
    k = min(k, n - 1)
    if k < 1:
        return np.zeros((2, 0), np.int64)
    a, b = close_pairs(atom_pos, reach)  # a < b, so the residue of a is not after that of b
    a, b = (x[atom_residue[a] != atom_residue[b]] for x in (a, b))
    code = atom_residue[a] * n + atom_residue[b]
    order = np.argsort(code, kind="stable")
    code, d2 = code[order], squared(atom_pos[a] - atom_pos[b])[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    (one, other), d2 = np.divmod(code[first], n), np.minimum.reduceat(d2, first) if len(first) else d2
    source, target, d2 = np.concatenate([one, other]), np.concatenate([other, one]), np.concatenate([d2, d2])
    sparse = np.flatnonzero(np.bincount(target, minlength=n) < k)  # fewer than k within reach
    is_dense = ~np.isin(target, sparse)
    parts = [(source[is_dense], target[is_dense], d2[is_dense]), *_atom_distances(atom_pos, atom_residue, sparse, n)]
    source, target, d2 = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((source, d2, target))
    return sort_edges(pos, _first_k(source[order], target[order], k))


def _first_k(source: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """Return the first k edges of each target, ``(2, E)``; ``target`` is ascending."""
    rank = np.arange(len(target)) - np.searchsorted(target, target)
    return np.stack([source, target])[:, rank < k]


def _atom_distances(
    atom_pos: np.ndarray, atom_residue: np.ndarray, rows: np.ndarray, n: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield sources, targets and squared distances of the closest atoms, from the residues ``rows`` to all others."""
    start = np.searchsorted(atom_residue, np.arange(n))
    step = max(1, _BLOCK // (len(atom_pos) * max(1, int(np.bincount(atom_residue, minlength=n).max()))))
    for begin in range(0, len(rows), step):
        block = rows[begin : begin + step]
        atoms = np.flatnonzero(np.isin(atom_residue, block))
        d2 = squared(atom_pos[atoms, None] - atom_pos[None])  # (atoms, A)
        d2 = np.minimum.reduceat(np.minimum.reduceat(d2, start, 1), np.searchsorted(atom_residue[atoms], block), 0)
        target, source = np.nonzero(np.arange(n) != block[:, None])
        yield source, block[target], d2[target, source]
