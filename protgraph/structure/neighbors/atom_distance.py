"""Nearest residues by the distance of their closest atoms, or with a minimum sequence separation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from protgraph.structure.neighbors.search import close_pairs, knn, sort_edges
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import squared

__all__ = ["distant_knn", "knn_by_atoms"]

_BLOCK = 2**21  # distances in memory at once


def distant_knn(residues: Residues, k: int, separation: int) -> np.ndarray:
    """Return the k nearest CA of each residue in other chains or at least ``separation`` positions away.

    ``k``: neighbors per residue; fewer if fewer are allowed. ``separation``: positions along the chain. Returns ``(2,
    E)`` int64, in the order of :mod:`protgraph.structure.neighbors.search`. Ties at the k-th distance go to the lower
    indices.
    """
    # Positions along a chain are unique: at most 2 (separation - 1) residues are excluded.
    most_excluded = 2 * max(separation - 1, 0)
    source, target = knn(residues.pos, k + most_excluded)
    chain = residues.chain_number
    seq_pos = residues.seq_pos
    is_other_chain = chain[source] != chain[target]
    is_apart = np.abs(seq_pos[source] - seq_pos[target]) >= separation
    allowed = is_other_chain | is_apart
    return _first_k(source[allowed], target[allowed], k)


def knn_by_atoms(
    pos: np.ndarray, atom_pos: np.ndarray, atom_residue: np.ndarray, k: int, *, reach: float = 8.0
) -> np.ndarray:
    """Return the k nearest residues of each, by the distance of the closest two atoms.

    ``pos``: ``(N, 3)`` positions of the residues, Å, for the order of edges. ``atom_pos``, ``atom_residue``: atoms:
    ``(A, 3)``, Å, and ``(A,)`` int64 ascending. ``k``: neighbors per residue; all N − 1 others if N ≤ k. ``reach``:
    initial radius of the search, Å; it does not change the edges. Returns ``(2, N·min(k, N − 1))`` int64. Ties at the
    k-th distance go to the lower indices.
    """
    n = len(pos)
    k = min(k, n - 1)
    if k < 1:
        return np.zeros((2, 0), np.int64)
    atom_pos = np.asarray(atom_pos, np.float64)
    source, target, squares = _residue_pairs(atom_pos, atom_residue, n, reach)

    # Residues with fewer than k others within reach are compared with all atoms.
    count = np.bincount(target, minlength=n)
    sparse = np.flatnonzero(count < k)
    is_kept = ~np.isin(target, sparse)
    sources = [source[is_kept]]
    targets = [target[is_kept]]
    distances = [squares[is_kept]]
    for block in _atom_distances(atom_pos, atom_residue, sparse, n):
        sources.append(block.source)
        targets.append(block.target)
        distances.append(block.squares)
    source = np.concatenate(sources)
    target = np.concatenate(targets)
    squares = np.concatenate(distances)

    order = np.lexsort((source, squares, target))
    nearest = _first_k(source[order], target[order], k)
    return sort_edges(pos, nearest)


class _Pairs(NamedTuple):
    """Ordered pairs of residues, and the squared distances of their closest atoms, ``(P,)`` each."""

    source: np.ndarray
    target: np.ndarray
    squares: np.ndarray


def _residue_pairs(atom_pos: np.ndarray, atom_residue: np.ndarray, n: int, reach: float) -> _Pairs:
    """Return the pairs of residues, in both directions, with atoms within ``reach``."""
    a, b = close_pairs(atom_pos, reach)  # a < b, so the residue of a is not after that of b
    is_between = atom_residue[a] != atom_residue[b]
    a = a[is_between]
    b = b[is_between]
    squares = squared(atom_pos[a] - atom_pos[b])

    # Pairs of atoms of the same two residues, one after the other: the least of their distances.
    pair = atom_residue[a] * n + atom_residue[b]
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    squares = squares[order]
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    if len(first):
        squares = np.minimum.reduceat(squares, first)
    lower, upper = np.divmod(pair[first], n)
    return _Pairs(
        source=np.concatenate([lower, upper]),
        target=np.concatenate([upper, lower]),
        squares=np.concatenate([squares, squares]),
    )


def _first_k(source: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """Return the first k edges of each target, ``(2, E)``; ``target`` is ascending."""
    rank = np.arange(len(target)) - np.searchsorted(target, target)
    return np.stack([source, target])[:, rank < k]


def _atom_distances(atom_pos: np.ndarray, atom_residue: np.ndarray, rows: np.ndarray, n: int) -> Iterator[_Pairs]:
    """Yield the pairs from all residues to some, ``rows``, block by block."""
    first_atom = np.searchsorted(atom_residue, np.arange(n))
    most_atoms = int(np.bincount(atom_residue, minlength=n).max())  # of a residue
    step = max(1, _BLOCK // (len(atom_pos) * max(1, most_atoms)))
    for begin in range(0, len(rows), step):
        block = rows[begin : begin + step]
        atoms = np.flatnonzero(np.isin(atom_residue, block))
        difference = atom_pos[atoms, None] - atom_pos[None]  # (atoms, A, 3)
        squares = squared(difference)

        # The least over the atoms of each source, then over those of each target: (rows of the block, N).
        squares = np.minimum.reduceat(squares, first_atom, axis=1)
        first_row = np.searchsorted(atom_residue[atoms], block)
        squares = np.minimum.reduceat(squares, first_row, axis=0)

        is_other = np.arange(n) != block[:, None]
        row, source = np.nonzero(is_other)
        yield _Pairs(source, block[row], squares[row, source])
