"""Pairs of points beyond a radius: Delaunay neighbors, and random ones by a seed and residue identities."""

from __future__ import annotations

import zlib

import numpy as np
from scipy.spatial import Delaunay

from protgraph.structure.neighbors.search import sort_edges
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import length

__all__ = ["delaunay", "random_neighbors"]

_FLAT = 1e-6  # relative to the largest extent; smaller extents are rounding errors of float32 coordinates


def delaunay(pos: np.ndarray) -> np.ndarray:
    """Return pairs joined in the Delaunay triangulation: some empty sphere passes through both.

    Coplanar points are triangulated in their plane, collinear points are joined in order. Of coincident points, the
    lowest index takes part, and the others are joined to it only. For more than four points on one empty sphere, the
    triangulation is not unique and follows Qhull.

    ``pos``: ``(N, 3)`` positions, Å. Returns ``(2, P)`` int64 pairs i < j.

    Examples
    --------
    >>> delaunay(np.array([[0.0, 0, 0], [3, 0, 0], [1, 0, 0]])).tolist()
    [[0, 1], [2, 2]]
    """
    if len(pos) == 0:
        return np.zeros((2, 0), np.int64)
    pos = np.asarray(pos, np.float64)
    pos = pos - pos.mean(axis=0)
    points, first, point = np.unique(pos, axis=0, return_index=True, return_inverse=True)
    neighbors = first[_triangulated(points)]

    # Coincident points are joined to the one of lowest index.
    first_of_row = first[point.ravel()]  # (N,)
    copies = np.flatnonzero(first_of_row != np.arange(len(pos)))
    coincident = np.stack([first_of_row[copies], copies])

    pairs = np.concatenate([neighbors, coincident], axis=1)
    pairs.sort(axis=0)
    return np.unique(pairs, axis=1)


def _triangulated(points: np.ndarray) -> np.ndarray:
    """Return pairs ``(2, M)`` of distinct points."""
    centered = points - points.mean(axis=0)
    _, extent, axes = np.linalg.svd(centered, full_matrices=False)
    least = _FLAT * extent.max(initial=0)
    rank = int((extent > least).sum())  # 1 on a line, 2 in a plane, 3 in space
    if len(points) <= rank + 1:  # a simplex
        return np.stack(np.triu_indices(len(points), 1))
    if rank == 1:
        order = np.argsort(points @ axes[0], kind="stable")
        return np.stack([order[:-1], order[1:]])
    if rank == 2:
        points = points @ axes[:2].T
    simplices = Delaunay(points).simplices.astype(np.int64)  # (S, rank + 1)
    first, second = np.triu_indices(rank + 1, 1)  # the edges of a simplex
    return np.stack([simplices[:, first].ravel(), simplices[:, second].ravel()])


_BLOCK = 2**20  # pairs sampled at once
_NEAREST = 1e-3  # Å, minimum distance in the probabilities


def random_neighbors(residues: Residues, k: int, *, separation: int, exponent: float, seed: int) -> np.ndarray:
    """Sample k neighbors of each residue without replacement, with probabilities ∝ ``d^-exponent``.

    The neighbors of target i have the k largest ``−exponent·ln d_ij + g_ij`` (Gumbel top-k), with ``g = −ln(−ln u)``
    and u a 53-bit hash (SplitMix64) of the seed and of chain, number and insertion code of i and j. The result is the
    same on every machine, and independent of the order of chains and of other proteins in a batch.

    ``k``: neighbors per residue; fewer if fewer are allowed. ``separation``: minimum difference of the positions of two
    residues of one chain. ``exponent``: exponent of the CA distance d; 0 samples uniformly. ``seed``: seed of the hash.
    Returns ``(2, E)`` int64, in the order of :mod:`protgraph.structure.neighbors.search`.

    References
    ----------
    Kool, van Hoof & Welling 2019, arXiv:1903.06059 (Gumbel top-k); Steele, Lea & Flood 2014,
    doi:10.1145/2660193.2660195 (SplitMix64).
    """
    n = len(residues)
    pos = residues.pos.astype(np.float64)
    key = _mix(_identity(residues) + np.uint64(seed))
    chain = residues.chain_number
    seq_pos = residues.seq_pos
    drawn = [np.zeros((2, 0), np.int64)]
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))  # targets

        # Gumbel noise from 53 bits of the hash of both residues, (R, N).
        pair_key = _mix(_mix(key[rows])[:, None] ^ key)
        u = ((pair_key >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        score = -np.log(-np.log(u))

        distance = length(pos[rows, None] - pos)
        score -= exponent * np.log(np.maximum(distance, _NEAREST))

        is_same_chain = chain[rows, None] == chain
        is_near = np.abs(seq_pos[rows, None] - seq_pos) < separation
        is_itself = rows[:, None] == np.arange(n)
        score[(is_same_chain & is_near) | is_itself] = -np.inf

        source = np.argsort(-score, axis=1, kind="stable")[:, :k]
        target = np.broadcast_to(rows[:, None], source.shape)
        is_allowed = np.take_along_axis(score, source, axis=1) > -np.inf
        drawn.append(np.stack([source[is_allowed], target[is_allowed]]))
    return sort_edges(pos, np.concatenate(drawn, axis=1))


def _identity(residues: Residues) -> np.ndarray:
    """Hash chain, number and insertion code of each residue, ``(N,)`` uint64."""
    number = residues.res_id.astype(np.int64).view(np.uint64)
    for texts in (residues.chain, residues.ins_code):
        names, inverse = np.unique(texts, return_inverse=True)
        checksums = [zlib.crc32(str(name).encode()) for name in names]
        codes = _mix(np.array(checksums, np.uint64))
        number = _mix(number ^ codes[inverse])
    return number


def _mix(x: np.ndarray) -> np.ndarray:
    """Apply the output function of SplitMix64 to ``(…)`` uint64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
