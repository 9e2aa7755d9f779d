"""Random neighbors that depend on a seed and on who the residues are, not on their order or on their batch."""

from __future__ import annotations

import zlib

import numpy as np

from protgraph.structure.neighbors.search import sort_edges
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import squared

__all__ = ["random_neighbors"]

_BLOCK = 2**20  # pairs drawn at once
_NEAREST = 1e-3  # Å; nearer neighbors count as being so far apart


def random_neighbors(residues: Residues, k: int, *, separation: int, exponent: float, seed: int) -> np.ndarray:
    """k neighbors of each residue, drawn without replacement with probabilities ∝ ``d^-exponent``.

    Parameters
    ----------
    residues : Residues
    k : int
        Neighbors of each; all that are allowed where there are no more.
    separation : int
        Residues of the same chain that are fewer positions away are not drawn.
    exponent : float
        Of the distance d of the CA atoms: 0 draws all alike.
    seed : int

    Returns
    -------
    ndarray
        ``(2, E)`` int64, in the order of :mod:`protgraph.structure.neighbors.search`.

    Notes
    -----
    The draw: the k largest of ``−exponent·ln d_ij + g_ij`` for each target i (Gumbel's top-k), with
    ``g = −ln(−ln u)`` and u a 53-bit hash (SplitMix64) of the seed and of chain, number and insertion code of i and
    of j. So it repeats on every machine, and a protein's edges depend neither on the order of its chains nor on others
    in the batch.

    References
    ----------
    Kool, van Hoof & Welling 2019, arXiv:1903.06059 (Gumbel top-k); Steele, Lea & Flood 2014,
    doi:10.1145/2660193.2660195 (SplitMix64).
    """
    n, pos = len(residues), residues.pos.astype(np.float64)
    key = _mixed(_identity(residues) + np.uint64(seed))
    chain, seq_pos = residues.chain_number, residues.seq_pos
    found = []
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        u = (_mixed(_mixed(key[rows])[:, None] ^ key) >> np.uint64(11)).astype(np.float64)
        score = -np.log(-np.log((u + 0.5) * 2.0**-53))  # (R, N)
        score -= exponent * np.log(np.maximum(np.sqrt(squared(pos[rows, None] - pos)), _NEAREST))
        near = (chain[rows, None] == chain) & (np.abs(seq_pos[rows, None] - seq_pos) < separation)
        score[near | (rows[:, None] == np.arange(n))] = -np.inf
        source = np.argsort(-score, axis=1, kind="stable")[:, :k]
        drawn = np.take_along_axis(score, source, 1) > -np.inf
        found.append(np.stack([source[drawn], np.broadcast_to(rows[:, None], source.shape)[drawn]]))
    return sort_edges(pos, np.concatenate([np.zeros((2, 0), np.int64), *found], axis=1))


def _identity(residues: Residues) -> np.ndarray:
    """``(N,)`` uint64 from chain, number and insertion code."""
    number = residues.res_id.astype(np.int64).view(np.uint64)
    for texts in (residues.chain, residues.ins_code):
        names, which = np.unique(texts, return_inverse=True)
        codes = np.array([zlib.crc32(str(name).encode()) for name in names], np.uint64)
        number = _mixed(number ^ _mixed(codes)[which])
    return number


def _mixed(x: np.ndarray) -> np.ndarray:
    """SplitMix64's output function on ``(…)`` uint64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
