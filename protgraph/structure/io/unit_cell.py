"""Vectors of a unit cell from its edges and angles, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from biotite.structure import unitcell_from_vectors, vectors_from_unitcell

__all__ = ["edges_and_angles", "unit_cell_vectors"]


def unit_cell_vectors(edges: tuple[float, float, float], angles: tuple[float, float, float]) -> np.ndarray | None:
    """Return the vectors of a unit cell, ``(3, 3)`` float, Å; None if it has no volume.

    Programs without a unit cell, e.g. CHARMM, NAMD and VMD, write one of zeros.

    ``edges``: a, b and c, Å. ``angles``: α, β and γ, degrees.

    Examples
    --------
    >>> unit_cell_vectors((2.0, 3.0, 4.0), (90.0, 90.0, 90.0)).round(6).tolist()
    [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]
    >>> unit_cell_vectors((0.0, 0.0, 0.0), (90.0, 90.0, 90.0)) is None
    True
    """
    radians = np.deg2rad(angles)
    cosines = np.cos(radians)
    squared_volume = 1 - (cosines**2).sum() + 2 * cosines.prod()  # of a cell with edges of 1
    is_finite = np.isfinite((*edges, *angles)).all()
    is_in_range = min(edges) > 0 and min(angles) > 0 and max(angles) < 180
    has_volume = squared_volume > 0
    if not (is_finite and is_in_range and has_volume):
        return None
    return vectors_from_unitcell(*edges, *radians)


class UnitCell(NamedTuple):
    """Edges, Å, and angles, degrees, of a unit cell."""

    a: float
    b: float
    c: float
    alpha: float
    beta: float
    gamma: float


def edges_and_angles(vectors: np.ndarray) -> UnitCell:
    """Return the edges and angles of the vectors ``(3, 3)`` of a unit cell."""
    a, b, c, *radians = unitcell_from_vectors(vectors)
    alpha, beta, gamma = np.rad2deg(radians).tolist()
    return UnitCell(float(a), float(b), float(c), alpha, beta, gamma)
