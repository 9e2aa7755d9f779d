"""TM-score, GDT-TS and GDT-HA of corresponding residues, maximized over superpositions as the program TMscore does.

Not biotite's ``tm_score``: it scores one given superposition (biotite 1.6.0). Superpositions of all fragments are
computed together: sums over selected residues and squared distances are matrix products of the columns of
:func:`_point_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from protgraph_plugins.similarity.superposition import (
    Superposition,
    as_points,
    optimal_rotations,
    superposed_rmsd,
    tm_distance,
)

from protgraph.errors import OptionError

__all__ = [
    "GDT_HA",
    "GDT_TS",
    "ScoredTransform",
    "SuperpositionScores",
    "fit_from_moments",
    "fit_transforms",
    "search_superposition",
    "superposition_scores",
]

GDT_TS = (1.0, 2.0, 4.0, 8.0)
"""Distances of GDT-TS, Å (Zemla 2003)."""
GDT_HA = (0.5, 1.0, 2.0, 4.0)
"""Distances of GDT-HA, "high accuracy", Å."""

_DISTANCES = tuple(sorted({*GDT_TS, *GDT_HA}))
_LEVELS, _SHORTEST = 6, 4  # lengths of the first fragments, N / 2^level, and the shortest one, as in TMscore
_LEAST_SELECTED = 3  # residues; the cutoff grows by _STEP until they are selected
_STEP = 0.5  # Å
_MOST_STARTS = 2000  # first fragments per length; all up to this many residues, then evenly spaced ones
_BLOCK = 2_000_000  # distances computed at once
_QUICK_ROUNDS = 4  # of superpositions, in the quick search


@dataclass(frozen=True, eq=False)
class SuperpositionScores:
    """Scores of a model by its best superpositions on the reference.

    Parameters
    ----------
    tm_score : float
        TM-score, 0 to 1.
    gdt_ts, gdt_ha : float
        0 to 1; each distance has its own best superposition.
    rmsd : float
        RMSD of all corresponding residues after their optimal superposition, Å.
    superposition : Superposition
        The one of the TM-score, from the model to the reference.
    """

    tm_score: float
    gdt_ts: float
    gdt_ha: float
    rmsd: float
    superposition: Superposition


def superposition_scores(model: np.ndarray, reference: np.ndarray, *, length: int | None = None) -> SuperpositionScores:
    """Compute TM-score, GDT and RMSD of corresponding positions.

    TM-score is ``max Σ_i 1 / (1 + (d_i / d₀)²) / L`` over superpositions, d_i the distance of residue i.

    Parameters
    ----------
    model, reference : ndarray
        ``(N, 3)`` Å, CA of corresponding residues.
    length : int, optional
        Residues L of the reference, of which N have a counterpart; N by default.

    Returns
    -------
    SuperpositionScores

    Raises
    ------
    OptionError
        The shapes differ, a coordinate is not finite, or L < N.

    Notes
    -----
    The search starts from superpositions of all fragments of N, N/2, …, 4 residues; the residues within d₀ + 1 Å
    (d₀ between 4.5 and 8 Å) are superposed again until they are the same ones. With more than 2000 residues, 2000
    evenly spaced fragments of each length are used. As in TMscore, the search aims at the TM-score: a GDT of 500
    residues can be some residues below the largest one.

    References
    ----------
    Zhang & Skolnick 2004, doi:10.1002/prot.20264 (TM-score and its search); Zemla 2003, doi:10.1093/nar/gkg571 (GDT).

    Examples
    --------
    >>> line = np.arange(40.0)[:, None] * [3.8, 0, 0]
    >>> s = superposition_scores(line, line + [1, 2, 3], length=80)
    >>> round(s.tm_score, 6), round(s.gdt_ts, 6), round(s.rmsd, 6)
    (0.5, 0.5, 0.0)
    """
    model, reference = as_points(model, reference)
    length = len(model) if length is None else length
    if length < len(model):
        raise OptionError(f"length {length}: the reference has fewer residues than correspond, {len(model)}.")
    search = _Search(model, reference, tm_distance(length))
    search.run()
    return SuperpositionScores(
        tm_score=search.best / length,
        gdt_ts=search.mean_within(GDT_TS) / length,
        gdt_ha=search.mean_within(GDT_HA) / length,
        rmsd=superposed_rmsd(model, reference),
        superposition=search.superposition(),
    )


class _Search:
    """Best superpositions of N corresponding positions."""

    def __init__(self, model: np.ndarray, reference: np.ndarray, d0: float) -> None:
        self.model_origin = model.mean(axis=0)
        self.reference_origin = reference.mean(axis=0)
        self.columns = _point_columns(model - self.model_origin, reference - self.reference_origin)  # (N, 17)
        self.n = len(model)
        self.d0 = d0
        self.cutoff = min(max(d0, 4.5), 8.0)
        self.best = -1.0
        self.transform = np.zeros(12)  # of the best one
        self.within = np.zeros(len(_DISTANCES), np.int64)
        self.seen: set[bytes] = set()

    def run(self) -> None:
        """Superpose fragments of each length, then the residues that they bring together, until no set is new."""
        for size in _fragment_lengths(self.n):
            for fragments in self._fragments(size):
                selected = self._superpose(fragments, self.cutoff - 1)
                while len(selected):
                    selected = self._superpose(selected, self.cutoff + 1)

    def superposition(self) -> Superposition:
        """Return the superposition of the TM-score in the coordinates of the input."""
        rotation = self.transform[:9].reshape(3, 3)
        shift = self.transform[9:] + self.reference_origin - rotation @ self.model_origin
        return Superposition(rotation, shift)

    def mean_within(self, distances: Sequence[float]) -> float:
        """Return the mean over distances of the largest number of residues within each."""
        counts = [self.within[_DISTANCES.index(distance)] for distance in distances]
        return float(sum(counts)) / len(counts)

    def _fragments(self, size: int) -> Iterator[np.ndarray]:
        """Yield the fragments of this size in blocks, ``(W, N)`` bool."""
        starts = np.arange(self.n - size + 1)
        if len(starts) > _MOST_STARTS:
            starts = np.linspace(0, starts[-1], _MOST_STARTS).astype(np.int64)
        residues = np.arange(self.n)
        block = max(_BLOCK // self.n, 1)
        for first in range(0, len(starts), block):
            begin = starts[first : first + block, None]
            yield (residues >= begin) & (residues < begin + size)

    def _superpose(self, selected: np.ndarray, cutoff: float) -> np.ndarray:
        """Superpose selected residues ``(W, N)``, update the scores, and return the new selections, each only once."""
        transforms = _transforms(selected @ self.columns[:, :16])  # (W, 12)
        squares = np.maximum(_distance_rows(transforms) @ self.columns.T, 0)  # (W, N)
        scores = (1 / (1 + squares / self.d0**2)).sum(axis=1)
        top = int(scores.argmax())
        if scores[top] > self.best:
            self.best = float(scores[top])
            self.transform = transforms[top]
        for column, distance in enumerate(_DISTANCES):
            counts = (squares <= distance**2).sum(axis=1)
            self.within[column] = max(self.within[column], int(counts.max()))

        near = _within(squares, cutoff)
        new = []
        for row, bits in enumerate(np.packbits(near, axis=1)):
            key = bits.tobytes()
            if key not in self.seen:
                self.seen.add(key)
                new.append(row)
        return near[new].astype(np.float64)


def _fragment_lengths(n: int) -> list[int]:
    """Return the lengths N, N/2, N/4, … of the first fragments, down to 4, or N if it is less."""
    lengths = [n // 2**level for level in range(_LEVELS - 1)]
    shortest = min(_SHORTEST, n)
    return [*(size for size in lengths if size > shortest), shortest]


def _within(squares: np.ndarray, cutoff: float) -> np.ndarray:
    """Return the residues nearer than the cutoff, ``(W, N)`` bool; for fewer than three it grows by steps of 0.5 Å.

    All of up to three residues.
    """
    if squares.shape[1] <= _LEAST_SELECTED:
        return np.ones(squares.shape, bool)
    third = np.sqrt(np.partition(squares, _LEAST_SELECTED - 1, axis=1)[:, _LEAST_SELECTED - 1])
    steps = np.maximum(np.floor((third - cutoff) / _STEP) + 1, 0)  # the third distance is below cutoff + steps · 0.5
    return squares < (cutoff + _STEP * steps)[:, None] ** 2


def _point_columns(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``1, x, y, x yᵀ, |x|² + |y|²`` of each pair of points, ``(N, 3)`` each to ``(N, 17)``."""
    products = (x[:, :, None] * y[:, None]).reshape(len(x), 9)
    squares = (x**2).sum(axis=1) + (y**2).sum(axis=1)
    return np.column_stack([np.ones(len(x)), x, y, products, squares])


def _transforms(sums: np.ndarray) -> np.ndarray:
    """Return rotation and translation from sums of the first 16 columns over residues, ``(W, 16)`` to ``(W, 12)``."""
    means = sums[:, 1:] / sums[:, :1]
    rotation, shift = fit_from_moments(means[:, :3], means[:, 3:6], means[:, 6:].reshape(-1, 3, 3))
    return np.concatenate([rotation.reshape(-1, 9), shift], axis=1)


def _distance_rows(transforms: np.ndarray) -> np.ndarray:
    """Return rows whose product with the columns is ``|R x + t − y|²``, ``(W, 12)`` to ``(W, 17)``."""
    inverse = np.swapaxes(transforms[:, :9].reshape(-1, 3, 3), 1, 2)
    shift = transforms[:, 9:]
    constant = (shift**2).sum(axis=1, keepdims=True)
    along_x = 2 * (inverse @ shift[:, :, None])[:, :, 0]
    products = -2 * inverse.reshape(-1, 9)  # of x_a y_b with R_ba
    return np.concatenate([constant, along_x, -2 * shift, products, np.ones_like(constant)], axis=1)


class ScoredTransform(NamedTuple):
    """Rotation and translation, ``x ↦ x @ rotation.T + translation``, and the score of the aligned residues.

    Parameters
    ----------
    rotation : ndarray
        ``(3, 3)``.
    translation : ndarray
        ``(3,)`` Å.
    score : float
        Sum of ``1 / (1 + d² / d0²)`` over aligned residues.
    """

    rotation: np.ndarray
    translation: np.ndarray
    score: float


def fit_transforms(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the rigid transforms of x onto y of least squared distance, for many weightings (Kabsch 1976).

    Parameters
    ----------
    x, y : ndarray
        ``(L, 3)`` Å.
    weights : ndarray
        ``(K, L)``, not negative, with at least one that is positive in each row.

    Returns
    -------
    tuple of ndarray
        Rotations ``(K, 3, 3)`` and translations ``(K, 3)``.
    """
    moments = np.concatenate([x, y, (x[:, :, None] * y[:, None, :]).reshape(-1, 9)], 1)  # (L, 15)
    sums = (weights @ moments) / weights.sum(1, keepdims=True)  # (K, 15)
    return fit_from_moments(sums[:, :3], sums[:, 3:6], sums[:, 6:].reshape(-1, 3, 3))


def search_superposition(x: np.ndarray, y: np.ndarray, d0: float) -> ScoredTransform:
    """Search a superposition of aligned residues with a large TM-score, for the steps of an alignment.

    :func:`superposition_scores` starts from every fragment; here a few are enough, since each alignment only has to
    lead to a better one. The whole alignment and its largest fragments are superposed; the residues that come near are
    superposed again, four times (Zhang & Skolnick 2004).

    Parameters
    ----------
    x, y : ndarray
        ``(L, 3)`` aligned CA atoms, Å.
    d0 : float
        Distance scale, Å.
    """
    weights = _quick_fragments(len(x))
    near = min(max(d0, 4.5), 8.0)
    best = ScoredTransform(np.eye(3), np.zeros(3), -1.0)
    for _ in range(_QUICK_ROUNDS):
        rotation, translation = fit_transforms(x, y, weights)
        moved = x @ rotation.swapaxes(1, 2) + translation[:, None, :]  # (K, L, 3)
        squared = ((moved - y) ** 2).sum(-1)  # (K, L)
        scores = (1 / (1 + squared / (d0 * d0))).sum(1)
        k = int(scores.argmax())
        if scores[k] > best.score:
            best = ScoredTransform(rotation[k], translation[k], float(scores[k]))
        next_weights = _nearest(squared, near)
        has_changed = (next_weights != weights).any(1)  # the others have converged
        if not has_changed.any():
            break
        weights = next_weights[has_changed]
    return best


def _nearest(squared: np.ndarray, near: float) -> np.ndarray:
    """Return weights 1 for residues within ``near``, of which there are at least three, else the three nearest."""
    rank = min(2, squared.shape[1] - 1)
    third = np.partition(squared, rank, axis=1)[:, rank]
    return (squared <= np.maximum(near * near, third)[:, None]).astype(np.float64)


def _quick_fragments(length: int) -> np.ndarray:
    """Return weights of the whole alignment, of its halves and of its quarters, ``(K, L)``."""
    rows = [(0, length)]
    for size in (length // 2, length // 4):
        if size >= _SHORTEST:
            rows += [(start, start + size) for start in range(0, length - size + 1, size)]
    weights = np.zeros((len(rows), length))
    for row, (start, stop) in zip(weights, rows, strict=True):
        row[start:stop] = 1
    return weights


def fit_from_moments(mean_x: np.ndarray, mean_y: np.ndarray, product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the rotations ``(K, 3, 3)`` and translations ``(K, 3)`` of :func:`fit_transforms` from moments.

    ``mean_x`` and ``mean_y`` are means, ``(K, 3)`` each, Å, and ``product`` is the mean of x yᵀ, ``(K, 3, 3)``, Å².
    """
    rotation = optimal_rotations(product - mean_x[:, :, None] * mean_y[:, None, :])
    return rotation, mean_y - (rotation @ mean_x[:, :, None])[:, :, 0]
