"""Quick search of the superposition of aligned residues with a large TM-score, for the steps of an alignment.

:func:`protgraph.structure.compare.superposition_scores` starts from every fragment; here a few are enough, since each
alignment only has to lead to a better one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from protgraph.structure.compare.superposition import optimal_rotations

__all__ = [
    "ScoredTransform",
    "fit_from_moments",
    "fit_transforms",
    "search_superposition",
    "squared_distances",
]

_ROUNDS = 4
_SHORTEST = 4  # residues of a fragment


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


def fit_from_moments(mean_x: np.ndarray, mean_y: np.ndarray, product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the rotations ``(K, 3, 3)`` and translations ``(K, 3)`` of :func:`fit_transforms` from moments.

    ``mean_x`` and ``mean_y`` are means, ``(K, 3)`` each, Å, and ``product`` is the mean of x yᵀ, ``(K, 3, 3)``, Å².
    """
    rotation = optimal_rotations(product - mean_x[:, :, None] * mean_y[:, None, :])
    return rotation, mean_y - (rotation @ mean_x[:, :, None])[:, :, 0]


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
    squared = (moved**2).sum(-1)[:, :, None] + (fixed**2).sum(-1) - 2 * (moved @ fixed.T)  # (K, M, N)
    return np.maximum(squared, 0, out=squared)


def search_superposition(x: np.ndarray, y: np.ndarray, d0: float) -> ScoredTransform:
    """Search a superposition of aligned residues with a large TM-score.

    The whole alignment and its largest fragments are superposed; the residues that come near are superposed again, four
    times (Zhang & Skolnick 2004).

    Parameters
    ----------
    x, y : ndarray
        ``(L, 3)`` aligned CA atoms, Å.
    d0 : float
        Distance scale, Å.
    """
    weights = _fragments(len(x))
    scale, near = d0 * d0, min(max(d0, 4.5), 8.0)
    best = ScoredTransform(np.eye(3), np.zeros(3), -1.0)
    for _ in range(_ROUNDS):
        rotation, translation = fit_transforms(x, y, weights)
        moved = x @ rotation.swapaxes(1, 2) + translation[:, None, :]  # (K, L, 3)
        squared = ((moved - y) ** 2).sum(-1)  # (K, L)
        scores = (1 / (1 + squared / scale)).sum(1)
        k = int(scores.argmax())
        if scores[k] > best.score:
            best = ScoredTransform(rotation[k], translation[k], float(scores[k]))
        chosen = _nearest(squared, near)
        keep = (chosen != weights).any(1)  # the others have converged
        if not keep.any():
            break
        weights = chosen[keep]
    return best


def _nearest(squared: np.ndarray, near: float) -> np.ndarray:
    """Return weights 1 for residues within ``near``, of which there are at least three, else the three nearest."""
    rank = min(2, squared.shape[1] - 1)
    third = np.partition(squared, rank, axis=1)[:, rank]
    return (squared <= np.maximum(near * near, third)[:, None]).astype(np.float64)


def _fragments(length: int) -> np.ndarray:
    """Return weights of the whole alignment, of its halves and of its quarters, ``(K, L)``."""
    rows = [(0, length)]
    for size in (length // 2, length // 4):
        if size >= _SHORTEST:
            rows += [(start, start + size) for start in range(0, length - size + 1, size)]
    weights = np.zeros((len(rows), length))
    for row, (start, stop) in zip(weights, rows, strict=True):
        row[start:stop] = 1
    return weights
