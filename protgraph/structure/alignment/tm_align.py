"""Alignment of two CA traces by their structure, with TM-scores, after TM-align.

Not tmtools (0.3.0, 2026-11-23): its code is TM-align's, and its license, GPL, is not that of this package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError
from protgraph.structure.alignment.dynamic_programming import align_matrices
from protgraph.structure.alignment.fragment_search import (
    ScoredTransform,
    search_superposition,
    squared_distances,
)
from protgraph.structure.alignment.seeds import initial_transforms
from protgraph.structure.compare import superposition_scores, tm_distance

__all__ = ["LEAST_RESIDUES", "StructureAlignment", "align_structures"]

_GAPS = (0.6, 0.0)  # of the scores 1 / (1 + d² / d0²), as in TM-align
_SEEDS = 5  # initial superpositions that are refined
_SCREENED = 3  # of them are aligned before a pair is given up
_BEAM = 3  # superpositions that are refined further
_ROUNDS = 12
_GIVE_UP = 0.8  # of the least TM-score: pairs of TM-score ≥ 0.5 had at least 0.43 after one alignment
LEAST_RESIDUES = 5
"""Residues that a chain must have to be aligned."""


@dataclass(frozen=True, eq=False)
class StructureAlignment:
    """Residues of two chains that are near each other after a superposition.

    Parameters
    ----------
    first_tm, second_tm : float
        TM-score, normalized by the number of residues of the first and of the second chain.
    first, second : ndarray
        ``(K,)`` int64, aligned residues of each chain, increasing.
    rotation, translation : ndarray
        ``(3, 3)`` and ``(3,)`` Å: ``x ↦ x @ rotation.T + translation`` moves the first chain onto the second.
    rmsd : float
        Å, of the aligned residues after the superposition of least squared distance.
    """

    first_tm: float
    second_tm: float
    first: np.ndarray
    second: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    rmsd: float


def align_structures(first: np.ndarray, second: np.ndarray, *, least: float = 0.0) -> StructureAlignment | None:
    """Align two CA traces so that the TM-score is large.

    Initial superpositions come from gapless threading, secondary structure and similar fragments. From each, residues
    are aligned by dynamic programming on ``1 / (1 + d_ij² / d0²)``, and superposed again, until nothing changes. The
    residue types are not used.

    Parameters
    ----------
    first, second : ndarray
        ``(M, 3)`` and ``(N, 3)`` finite CA atoms, Å; at least five residues each.
    least : float
        Give up early, and return None, if the TM-score, normalized by the shorter chain, is very probably less.

    Raises
    ------
    OptionError
        The arrays are not CA traces.

    Notes
    -----
    Differences from TM-align: fragments are compared by their inner distances, initial superpositions are ranked by the
    sum of the scores of nearest residues, and the three best are refined.

    References
    ----------
    Zhang & Skolnick 2005, Nucleic Acids Res. 33, 2302.

    Examples
    --------
    >>> t = np.arange(40)
    >>> helix = np.stack([2.3 * np.cos(1.745 * t), 2.3 * np.sin(1.745 * t), 1.5 * t], 1)
    >>> found = align_structures(helix, helix[:, [1, 2, 0]] + 7)
    >>> round(found.first_tm, 3), len(found.first)
    (1.0, 40)
    """
    for name, pos in (("first", first), ("second", second)):
        if np.ndim(pos) != 2 or np.shape(pos)[1] != 3 or len(pos) < LEAST_RESIDUES or not np.isfinite(pos).all():
            raise OptionError(
                f"{name}: not a CA trace, shape {np.shape(pos)}. Allowed: (N, 3) finite positions of "
                f"at least {LEAST_RESIDUES} residues."
            )
    swapped = len(first) > len(second)
    x, y = (np.asarray(pos, np.float64) for pos in ((second, first) if swapped else (first, second)))
    x_mean, y_mean = x.mean(0), y.mean(0)
    pairs = _search(x - x_mean, y - y_mean, least)
    if pairs is None:
        return None
    return _result(x, y, pairs, swapped)


def _search(x: np.ndarray, y: np.ndarray, least: float) -> np.ndarray | None:
    """Return the aligned residues of the best alignment, ``(K, 2)``; None if it is given up."""
    d0 = tm_distance(len(x))
    rotation, translation = initial_transforms(x, y, d0, number=_SEEDS)
    if least > 0:
        state = [(r, t, _GAPS[0]) for r, t in zip(rotation[:_SCREENED], translation[:_SCREENED], strict=True)]
        screened = _align(x, y, d0, state, set())
        if not screened or screened[0][0].score < _GIVE_UP * least * len(x):
            return None
    state = [(r, t, gap) for r, t in zip(rotation, translation, strict=True) for gap in _GAPS]
    best, best_pairs, seen = -1.0, None, set()
    for _ in range(_ROUNDS):
        found = _align(x, y, d0, state, seen)
        if not found:
            break
        if found[0][0].score > best:
            best, best_pairs = found[0][0].score, found[0][1]
        state = [(s.rotation, s.translation, gap) for s, _, gap in found[:_BEAM]]
    return best_pairs


_State = tuple[np.ndarray, np.ndarray, float]


def _align(
    x: np.ndarray, y: np.ndarray, d0: float, state: list[_State], seen: set[tuple[float, bytes]]
) -> list[tuple[ScoredTransform, np.ndarray, float]]:
    """Align after each superposition, and superpose the aligned residues; new alignments only, best first."""
    rotation, translation, gaps = (np.array(part) for part in zip(*state, strict=True))
    squared = squared_distances(x, y, rotation, translation)  # (K, M, N)
    found = []
    for pairs, gap in zip(align_matrices(1 / (1 + squared / np.float32(d0 * d0)), gaps), gaps.tolist(), strict=True):
        key = gap, pairs.tobytes()
        if len(pairs) >= 3 and key not in seen:
            seen.add(key)
            found.append((search_superposition(x[pairs[:, 0]], y[pairs[:, 1]], d0), pairs, gap))
    return sorted(found, key=lambda one: -one[0].score)


def _result(x: np.ndarray, y: np.ndarray, pairs: np.ndarray, swapped: bool) -> StructureAlignment:
    """Compute both TM-scores and the RMSD of an alignment; x is the shorter chain, the second one if swapped."""
    a, b = x[pairs[:, 0]], y[pairs[:, 1]]
    placed = search_superposition(a, b, tm_distance(len(x)))
    apart = ((a @ placed.rotation.T + placed.translation - b) ** 2).sum(1)
    near = apart <= max((1.5 * len(x) ** 0.3 + 3.5) ** 2, np.sort(apart)[2])  # d8 of TM-align; three at least
    pairs, a, b = pairs[near], a[near], b[near]
    by_x, by_y = (superposition_scores(a, b, length=len(pos)) for pos in (x, y))
    rotation, translation = by_x.superposition.rotation, by_x.superposition.translation
    if not swapped:
        found = pairs[:, 0], pairs[:, 1], rotation, translation, by_x.rmsd
        return StructureAlignment(by_x.tm_score, by_y.tm_score, *found)
    found = pairs[:, 1], pairs[:, 0], rotation.T, -rotation.T @ translation, by_x.rmsd
    return StructureAlignment(by_y.tm_score, by_x.tm_score, *found)
