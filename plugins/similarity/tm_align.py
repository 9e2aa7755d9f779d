"""Alignment of two CA traces by their structure, with TM-scores, after TM-align.

Not tmtools (0.3.0, 2026-11-23): its code is TM-align's, and its license, GPL, is not that of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from protgraph_plugins.similarity.superposition import tm_distance
from protgraph_plugins.similarity.superposition_search import (
    ScoredTransform,
    fit_from_moments,
    fit_transforms,
    search_superposition,
    superposition_scores,
)

from protgraph.errors import OptionError

__all__ = ["LEAST_RESIDUES", "StructureAlignment", "align_matrices", "align_structures"]

_GAPS = (0.6, 0.0)  # of the scores 1 / (1 + d² / d0²), as in TM-align
_SEEDS = 5  # initial superpositions that are refined
_SCREENED = 3  # of them are aligned before a pair is given up
_BEAM = 3  # superpositions that are refined further
_ROUNDS = 12
_GIVE_UP = 0.8  # of the least TM-score: pairs of TM-score ≥ 0.5 had at least 0.43 after one alignment
LEAST_RESIDUES = 5
"""Residues that a chain must have to be aligned."""
_HELIX = ((5.45, 5.18, 6.37), 2.1)  # Å: CA distances of residues 2, 3, 4 apart, and the tolerance
_STRAND = ((6.1, 10.4, 13.0), 1.42)
_COIL, _HELIX_CODE, _STRAND_CODE, _TURN_CODE = range(4)
_WINDOWS = (12, 24)  # residues of fragments that are compared
_FRAGMENT_PAIRS = 16  # superpositions of fragments of each length
_RANKED = 40  # residues of the shorter chain, about, by which superpositions are ranked
_DIFFERENT = 2.9  # largest trace of the rotation between two of them: 18 degrees


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
    >>> alignment = align_structures(helix, helix[:, [1, 2, 0]] + 7)
    >>> round(alignment.first_tm, 3), len(alignment.first)
    (1.0, 40)
    """
    _check_trace("first", first)
    _check_trace("second", second)
    # x is the shorter chain
    swapped = len(first) > len(second)
    if swapped:
        first, second = second, first
    x = np.asarray(first, np.float64)
    y = np.asarray(second, np.float64)
    pairs = _search(x - x.mean(0), y - y.mean(0), least)
    if pairs is None:
        return None
    return _result(x, y, pairs, swapped)


def _check_trace(name: str, pos: np.ndarray) -> None:
    is_trace = np.ndim(pos) == 2 and np.shape(pos)[1] == 3 and len(pos) >= LEAST_RESIDUES
    if not is_trace or not np.isfinite(pos).all():
        raise OptionError(
            f"{name}: not a CA trace, shape {np.shape(pos)}. Allowed: (N, 3) finite positions of "
            f"at least {LEAST_RESIDUES} residues."
        )


class _Start(NamedTuple):
    """Superposition from which residues are aligned, and the cost of a gap."""

    rotation: np.ndarray
    translation: np.ndarray
    gap: float


class _Aligned(NamedTuple):
    """Aligned residues ``(K, 2)``, their superposition, and the cost of a gap."""

    superposition: ScoredTransform
    pairs: np.ndarray
    gap: float


class _Refinement:
    """Alignments of two traces, x the shorter one, from superpositions; each alignment is made once."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y, self.d0 = x, y, tm_distance(len(x))
        self._seen: set[tuple[float, bytes]] = set()  # gap and pairs of each alignment

    def align(self, starts: Sequence[_Start]) -> list[_Aligned]:
        """Align after each superposition, and superpose the aligned residues; new alignments only, best first."""
        rotation = np.array([start.rotation for start in starts])
        translation = np.array([start.translation for start in starts])
        gaps = np.array([start.gap for start in starts])
        squared = squared_distances(self.x, self.y, rotation, translation)  # (K, M, N)
        scores = 1 / (1 + squared / np.float32(self.d0 * self.d0))
        alignments = []
        for pairs, gap in zip(align_matrices(scores, gaps), gaps.tolist(), strict=True):
            key = (gap, pairs.tobytes())
            if len(pairs) < 3 or key in self._seen:
                continue
            self._seen.add(key)
            superposition = search_superposition(self.x[pairs[:, 0]], self.y[pairs[:, 1]], self.d0)
            alignments.append(_Aligned(superposition, pairs, gap))
        return sorted(alignments, key=lambda aligned: -aligned.superposition.score)


def _starts(seeds: Sequence[tuple[np.ndarray, np.ndarray]], gaps: Sequence[float]) -> list[_Start]:
    """Return each rotation and translation with each cost of a gap."""
    return [_Start(rotation, translation, gap) for rotation, translation in seeds for gap in gaps]


def _search(x: np.ndarray, y: np.ndarray, least: float) -> np.ndarray | None:
    """Return the aligned residues of the best alignment, ``(K, 2)``; None if it is given up."""
    rotations, translations = initial_transforms(x, y, tm_distance(len(x)), number=_SEEDS)
    seeds = list(zip(rotations, translations, strict=True))
    if least > 0:
        screened = _Refinement(x, y).align(_starts(seeds[:_SCREENED], _GAPS[:1]))
        if not screened or screened[0].superposition.score < _GIVE_UP * least * len(x):
            return None
    starts = _starts(seeds, _GAPS)
    refinement = _Refinement(x, y)
    best: _Aligned | None = None
    for _ in range(_ROUNDS):
        alignments = refinement.align(starts)
        if not alignments:
            break
        if best is None or alignments[0].superposition.score > best.superposition.score:
            best = alignments[0]
        starts = [_Start(s.rotation, s.translation, gap) for s, _, gap in alignments[:_BEAM]]
    return None if best is None else best.pairs


def _result(x: np.ndarray, y: np.ndarray, pairs: np.ndarray, swapped: bool) -> StructureAlignment:
    """Compute both TM-scores and the RMSD of an alignment; x is the shorter chain, the second one if swapped."""
    # Leave out aligned residues that are far apart, but keep at least three.
    aligned_x = x[pairs[:, 0]]
    aligned_y = y[pairs[:, 1]]
    superposition = search_superposition(aligned_x, aligned_y, tm_distance(len(x)))
    moved = aligned_x @ superposition.rotation.T + superposition.translation
    squared = ((moved - aligned_y) ** 2).sum(1)
    d8 = 1.5 * len(x) ** 0.3 + 3.5  # Å, of TM-align
    third_smallest = np.sort(squared)[2]
    is_near = squared <= max(d8**2, third_smallest)
    rows_x, rows_y = pairs[is_near].T

    by_x = superposition_scores(aligned_x[is_near], aligned_y[is_near], length=len(x))
    by_y = superposition_scores(aligned_x[is_near], aligned_y[is_near], length=len(y))
    rotation = by_x.superposition.rotation
    translation = by_x.superposition.translation
    if not swapped:
        return StructureAlignment(by_x.tm_score, by_y.tm_score, rows_x, rows_y, rotation, translation, by_x.rmsd)
    inverse = -rotation.T @ translation
    return StructureAlignment(by_y.tm_score, by_x.tm_score, rows_y, rows_x, rotation.T, inverse, by_x.rmsd)


def secondary_structure_codes(pos: np.ndarray) -> np.ndarray:
    """Return 0 coil, 1 helix, 2 strand, 3 turn of each residue, from distances of the CA of residues i − 2 to i + 2.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` CA atoms, Å.

    Returns
    -------
    ndarray
        ``(N,)`` int64.

    References
    ----------
    Zhang & Skolnick 2005, Nucleic Acids Res. 33, 2302, eq. 1; turns as in their program: CA 4 apart within 8 Å.
    """
    codes = np.zeros(len(pos), np.int64)
    if len(pos) < 5:
        return codes
    inner = len(pos) - 4  # residues with two before and two after them
    fits_strand = np.ones(inner, bool)
    fits_helix = np.ones(inner, bool)
    for number, separation in enumerate((2, 3, 4)):
        apart = np.linalg.norm(pos[separation:] - pos[:-separation], axis=1)
        for start in range(5 - separation):  # pairs of residues i − 2 to i + 2
            distance = apart[start : start + inner]
            fits_strand &= np.abs(distance - _STRAND[0][number]) < _STRAND[1]
            fits_helix &= np.abs(distance - _HELIX[0][number]) < _HELIX[1]
    ends = np.linalg.norm(pos[4:] - pos[:-4], axis=1)
    inner_codes = np.where(ends < 8, _TURN_CODE, _COIL)
    inner_codes[fits_strand] = _STRAND_CODE
    inner_codes[fits_helix] = _HELIX_CODE
    codes[2:-2] = inner_codes
    return codes


def initial_transforms(x: np.ndarray, y: np.ndarray, d0: float, *, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most promising superpositions of two traces, best first.

    Candidates are those of TM-align: gapless threading, an alignment of the secondary structures, and fragments of
    similar shape. They are ranked by ``Σ_i max_j 1 / (1 + d_ij² / d0²)``.

    Parameters
    ----------
    x, y : ndarray
        ``(M, 3)`` and ``(N, 3)`` CA atoms, Å, M ≤ N.
    d0 : float
        Distance scale, Å.
    number : int
        Superpositions to return.

    Returns
    -------
    tuple of ndarray
        Rotations ``(K, 3, 3)`` and translations ``(K, 3)``.
    """
    candidates = [_threading(x, y, d0), _by_secondary_structure(x, y)]
    for size in _WINDOWS:
        if len(x) >= 2 * size:
            candidates.append(_fragment_pairs(x, y, size))
    rotation = np.concatenate([rotations for rotations, _ in candidates])
    translation = np.concatenate([translations for _, translations in candidates])
    value = _nearest_sum(x, y, rotation, translation, d0)
    chosen: list[int] = []
    for k in np.argsort(-value, kind="stable").tolist():
        traces = [float((rotation[k] * rotation[c]).sum()) for c in chosen]  # of the rotations between them
        if all(trace < _DIFFERENT for trace in traces):
            chosen.append(k)
        if len(chosen) == number:
            break
    return rotation[chosen], translation[chosen]


def _nearest_sum(x: np.ndarray, y: np.ndarray, rotation: np.ndarray, translation: np.ndarray, d0: float) -> np.ndarray:
    """Compute ``Σ_i max_j 1 / (1 + d_ij² / d0²)`` of each superposition, over a part of the residues i."""
    rows = x[:: max(1, len(x) // _RANKED)]
    nearest = squared_distances(rows, y, rotation, translation).min(2)  # (K, R)
    return (1 / (1 + nearest / np.float32(d0 * d0))).sum(1)


def _threading(x: np.ndarray, y: np.ndarray, d0: float) -> tuple[np.ndarray, np.ndarray]:
    """Superpose all residues of every gapless alignment; return the four of the largest score, refined once."""
    m, n = len(x), len(y)
    least = min(m, max(5, m // 2))
    shifts = np.arange(least - m, n - least + 1)
    row = shifts[:, None] + np.arange(m)  # (S, M) residue of y of each residue of x
    known = ((row >= 0) & (row < n)).astype(np.float64)
    partner = y[np.clip(row, 0, n - 1)]  # (S, M, 3)
    size = known.sum(1, keepdims=True)
    mean_x = known @ x / size
    weighted = partner * known[:, :, None]
    mean_y = weighted.sum(1) / size
    product = x.T @ weighted / size[:, :, None]  # (S, 3, 3)
    rotation, translation = fit_from_moments(mean_x, mean_y, product)
    moved = x @ rotation.swapaxes(1, 2) + translation[:, None, :]
    scores = (known / (1 + ((moved - partner) ** 2).sum(-1) / d0**2)).sum(1)
    best = np.argsort(-scores, kind="stable")[:4]
    return rotation[best], translation[best]


def _by_secondary_structure(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Superpose the residues of an alignment of secondary structures: 1 for equal ones, 1 for a gap."""
    is_equal = secondary_structure_codes(x)[:, None] == secondary_structure_codes(y)
    (pairs,) = align_matrices(is_equal[None].astype(np.float32), 1.0)
    if len(pairs) < 3:
        return np.eye(3)[None], (y.mean(0) - x.mean(0))[None]
    weights = np.zeros((3, len(pairs)))
    weights[0] = 1  # all pairs
    weights[1, : (len(pairs) + 1) // 2] = 1  # the first half
    weights[2, len(pairs) // 2 :] = 1  # the second half
    return fit_transforms(x[pairs[:, 0]], y[pairs[:, 1]], weights)


def _fragment_pairs(x: np.ndarray, y: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Superpose the pairs of fragments with the most similar distances between their residues."""
    step = size // 3
    starts = np.arange(0, len(x) - size + 1, step)
    distances_x = _inner_distances(x, size)[starts]
    distances_y = _inner_distances(y, size)

    # Squared differences of the distances, |a − b|² = |a|² + |b|² − 2 a·b, (S, N).
    squares_x = (distances_x**2).sum(1)[:, None]
    squares_y = (distances_y**2).sum(1)
    change = squares_x + squares_y - 2 * distances_x @ distances_y.T
    rows, columns = _minima(change, _FRAGMENT_PAIRS)

    offset = np.arange(size)
    fragments_x = x[starts[rows][:, None] + offset]  # (K, size, 3)
    fragments_y = y[columns[:, None] + offset]
    product = fragments_x.swapaxes(1, 2) @ fragments_y / size
    return fit_from_moments(fragments_x.mean(1), fragments_y.mean(1), product)


def _inner_distances(pos: np.ndarray, size: int) -> np.ndarray:
    """Return distances within each window of residues, ``(N − size + 1, D)``, at every third residue of the window."""
    inside = np.arange(0, size, 3)
    i, j = np.triu_indices(len(inside), 1)
    start = np.arange(len(pos) - size + 1)[:, None]
    return np.linalg.norm(pos[start + inside[i]] - pos[start + inside[j]], axis=-1)


def _minima(values: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the smallest values that are not larger than their neighbors in the row."""
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
    local = (values <= padded[:, :-2]) & (values <= padded[:, 2:])
    rows, columns = np.nonzero(local)
    order = np.argsort(values[rows, columns], kind="stable")[:number]
    return rows[order], columns[order]


def squared_distances(x: np.ndarray, y: np.ndarray, rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """Compute the squared distances of all residues after each transform of x.

    Parameters
    ----------
    x, y : ndarray
        ``(M, 3)`` and ``(N, 3)`` Å, near the origin.
    rotation, translation : ndarray
        ``(K, 3, 3)`` and ``(K, 3)`` Å.

    Returns
    -------
    ndarray
        ``(K, M, N)`` float32, Å².
    """
    moved = (x @ rotation.swapaxes(1, 2) + translation[:, None, :]).astype(np.float32)  # (K, M, 3)
    fixed = y.astype(np.float32)
    squares_moved = (moved**2).sum(-1)[:, :, None]
    squares_fixed = (fixed**2).sum(-1)
    squared = squares_moved + squares_fixed - 2 * (moved @ fixed.T)  # (K, M, N)
    return np.maximum(squared, 0, out=squared)


def align_matrices(scores: np.ndarray, gap: np.ndarray | float) -> list[np.ndarray]:
    """Return the best local alignment of each matrix; a gap costs the same whatever its length.

    ``H(i, j) = max(0, H(i−1, j−1) + S(i, j), max_k H(i, j−k) − g, max_k H(i−k, j) − g)`` (Smith & Waterman 1981, eq. 1
    with a constant gap weight). With scores that are not negative, gaps at the ends are free and the alignment is
    global.

    Parameters
    ----------
    scores : ndarray
        ``(P, M, N)`` float32.
    gap : ndarray or float
        ``(P,)`` cost of a gap, not negative.

    Returns
    -------
    list of ndarray
        ``(K, 2)`` int64: rows and columns that are aligned, both increasing.

    Examples
    --------
    >>> align_matrices(np.eye(4, dtype=np.float32)[None], 0.5)[0].tolist()
    [[0, 0], [1, 1], [2, 2], [3, 3]]
    """
    number, m, n = scores.shape
    cost = np.broadcast_to(np.asarray(gap, np.float32), number).copy()[:, None]
    best = np.zeros((number, m + 1, n + 1), np.float32)
    upward = np.full((number, n), -np.inf, np.float32)  # best value with a gap in the columns so far
    reached = np.empty((number, n), np.float32)
    for i in range(m):
        row = best[:, i + 1, 1:]
        np.subtract(best[:, i, 1:], cost, out=reached)
        np.maximum(upward, reached, out=upward)
        np.add(best[:, i, :-1], scores[:, i], out=row)
        np.maximum(row, upward, out=row)
        np.maximum(row, 0, out=row)
        np.maximum.accumulate(row, axis=1, out=reached)
        reached -= cost
        np.maximum(row[:, 1:], reached[:, :-1], out=row[:, 1:])
    return [_trace(best[p], scores[p], float(cost[p, 0])) for p in range(number)]


def _trace(best: np.ndarray, scores: np.ndarray, cost: float) -> np.ndarray:
    """Follow the steps that led to the largest value backwards."""
    n, gap = scores.shape[1], np.float32(cost)
    steps = (best[1:, 1:] != best[:-1, :-1] + scores).view(np.uint8)  # 0: the residues are aligned
    if gap == 0:
        steps += steps * (best[1:, 1:] != best[1:, :-1])  # 1: one to the left, 2: one up
    steps[best[1:, 1:] <= 0] = 3
    codes = steps.tobytes()
    i, j = (int(k) for k in np.unravel_index(int(best.argmax()), best.shape))
    pairs = []
    while i and j and (step := codes[(i - 1) * n + j - 1]) != 3:
        if step == 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif gap == 0 and step == 1:
            j -= 1
        elif gap == 0:
            i -= 1
        else:
            left = np.flatnonzero(best[i, :j] - gap == best[i, j])
            if len(left):
                j = int(left[-1])
            else:
                i = int(np.flatnonzero(best[:i, j] - gap == best[i, j])[-1])
    return np.array(pairs[::-1], np.int64).reshape(-1, 2)
