"""Optimal superposition of points by rotation and translation (Kabsch), the RMSD after it, and the TM-score's scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError

__all__ = ["Superposition", "as_points", "optimal_rotations", "superpose", "superposed_rmsd", "tm_distance"]


@dataclass(frozen=True, eq=False)
class Superposition:
    """Rigid transform ``x ↦ R x + t``.

    Parameters
    ----------
    rotation : ndarray
        ``(3, 3)`` float64, determinant 1.
    translation : ndarray
        ``(3,)`` float64, Å.
    """

    rotation: np.ndarray
    translation: np.ndarray

    def apply(self, points: np.ndarray) -> np.ndarray:
        """Transform points, ``(…, 3)`` to ``(…, 3)`` float64, Å."""
        return np.asarray(points, np.float64) @ self.rotation.T + self.translation


def superpose(mobile: np.ndarray, fixed: np.ndarray) -> Superposition:
    """Return the transform of ``mobile`` with the least RMSD to ``fixed``; reflections are not allowed.

    Parameters
    ----------
    mobile, fixed : ndarray
        ``(N, 3)`` Å, corresponding points.

    Raises
    ------
    OptionError
        The shapes differ, there are no points, or a coordinate is not finite.

    References
    ----------
    Kabsch 1976, doi:10.1107/S0567739476001873; 1978, doi:10.1107/S0567739478001680.

    Examples
    --------
    >>> points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0]])
    >>> superpose(points, points + [1, 2, 3]).translation
    array([1., 2., 3.])
    """
    mobile, fixed = as_points(mobile, fixed)
    center, other = mobile.mean(axis=0), fixed.mean(axis=0)
    rotation = optimal_rotations(((mobile - center).T @ (fixed - other))[None])[0]
    return Superposition(rotation, other - rotation @ center)


def superposed_rmsd(mobile: np.ndarray, fixed: np.ndarray) -> float:
    """Return the least RMSD of ``mobile (N, 3)`` and ``fixed (N, 3)``, Å, over rotations and translations, Å."""
    moved = superpose(mobile, fixed).apply(mobile)
    return float(np.sqrt(((moved - np.asarray(fixed, np.float64)) ** 2).sum(axis=1).mean()))


def optimal_rotations(covariance: np.ndarray) -> np.ndarray:
    """Return the rotations R that maximize ``tr(R H)`` for matrices ``H = Σ x yᵀ``, ``(W, 3, 3)`` to ``(W, 3, 3)``.

    R rotates the centered points x onto y with the least squared distance (Kabsch 1978).
    """
    left, _, right = np.linalg.svd(covariance)
    right = np.swapaxes(right, 1, 2)  # (W, 3, 3) columns are right singular vectors
    right[:, :, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))[:, None]
    return right @ np.swapaxes(left, 1, 2)


def as_points(mobile: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corresponding points ``mobile`` and ``fixed (N, 3)`` as float64, both of the same shape.

    Raises
    ------
    OptionError
        The shapes differ or are not ``(N, 3)`` with N ≥ 1, or a coordinate is not finite.
    """
    mobile, fixed = np.asarray(mobile, np.float64), np.asarray(fixed, np.float64)
    if mobile.shape != fixed.shape or mobile.ndim != 2 or mobile.shape[1:] != (3,) or len(mobile) == 0:
        raise OptionError(
            f"points to superpose: shapes {mobile.shape} and {fixed.shape}. Allowed: two equal shapes (N, 3), N ≥ 1."
        )
    for name, points in (("first", mobile), ("second", fixed)):
        wrong = ~np.isfinite(points).all(axis=1)
        if wrong.any():
            raise OptionError(
                f"points to superpose: row {int(wrong.argmax())} of the {name} array is not finite. Remove such rows."
            )
    return mobile, fixed


def tm_distance(length: int) -> float:
    """Return d₀ of the TM-score for L residues of the reference, ``1.24 (L − 15)^⅓ − 1.8`` Å, at least 0.5 Å."""
    return max(1.24 * (length - 15) ** (1 / 3) - 1.8, 0.5) if length > 15 else 0.5
