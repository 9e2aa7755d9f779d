"""Random neighbors that depend on a seed and on residue identities, not on their order or batch."""

from __future__ import annotations

import zlib

import numpy as np

from protgraph.structure.neighbors.search import sort_edges
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import length

__all__ = ["random_neighbors"]

_BLOCK = 2**20  # pairs sampled at once
_NEAREST = 1e-3  # Å, minimum distance in the probabilities


def random_neighbors(residues: Residues, k: int, *, separation: int, exponent: float, seed: int) -> np.ndarray:
    """Sample k neighbors of each residue without replacement, with probabilities ∝ ``d^-exponent``.

    Parameters
    ----------
    k : int
        Neighbors per residue; fewer if fewer are allowed.
    separation : int
        Minimum difference of the positions of two residues of one chain.
    exponent : float
        Exponent of the CA distance d; 0 samples uniformly.
    seed : int
        Seed of the hash.

    Returns
    -------
    ndarray
        ``(2, E)`` int64, in the order of :mod:`protgraph.structure.neighbors.search`.

    Notes
    -----
    The neighbors of target i have the k largest ``−exponent·ln d_ij + g_ij`` (Gumbel top-k), with ``g = −ln(−ln u)``
    and u a 53-bit hash (SplitMix64) of the seed and of chain, number and insertion code of i and j. The result is the
    same on every machine, and independent of the order of chains and of other proteins in a batch.

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
