"""Points around each residue: center and tip of its side chain, and probe points outside the surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.structure.descriptors.representative_atoms import cb_or_ca
from protgraph.structure.neighbors.search import radius as radius_edges
from protgraph.structure.residues.residues import BACKBONE, Residues
from protgraph.structure.vectors import unit

__all__ = ["PROBES", "SidechainPoints", "outward_direction", "probe_points", "sidechain_points"]

_NOT_SIDECHAIN = (*BACKBONE, "OXT")
_NORMAL_RADIUS = 16.0  # Å

PROBES = ("center", "tip", "center + 4 Å", "center + 8 Å", "outward 8 Å", "outward 14 Å")
"""Points of :func:`probe_points`: of the side chain, along its direction, and along the outward direction."""


@dataclass(frozen=True)
class SidechainPoints:
    """Points of the side chain of each residue.

    Parameters
    ----------
    center : ndarray
        ``(N, 3)`` float64, Å, mean of its heavy atoms; without any, CB, else the virtual CB, else CA.
    tip : ndarray
        ``(N, 3)`` float64, Å, its heavy atom farthest from CA; without any, the center.
    direction : ndarray
        ``(N, 3)`` float64, unit vector from CA to the center; 0 if they coincide.
    """

    center: np.ndarray
    tip: np.ndarray
    direction: np.ndarray


def sidechain_points(residues: Residues) -> SidechainPoints:
    """Return center, tip and direction of the side chain of each residue.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    SidechainPoints
    """
    n, ca = len(residues), residues.pos.astype(np.float64)
    atoms = np.flatnonzero(~np.isin(residues.atom_name, _NOT_SIDECHAIN))
    owner = residues.atom_residue[atoms]
    offset = residues.atom_pos[atoms].astype(np.float64) - ca[owner]  # (A, 3) relative to CA: exact far from the origin
    count = np.bincount(owner, minlength=n)
    total = np.stack([np.bincount(owner, offset[:, axis], n) for axis in range(3)], 1)
    has_atoms = (count > 0)[:, None]
    center = np.where(has_atoms, total / np.maximum(count, 1)[:, None], cb_or_ca(residues) - ca)
    order = np.lexsort((np.linalg.norm(offset, axis=1), owner))
    last = np.cumsum(count)[count > 0] - 1  # the farthest atom of each residue with a side chain
    tip = center.copy()
    tip[count > 0] = offset[order[last]]
    return SidechainPoints(ca + center, ca + tip, unit(center))


def outward_direction(residues: Residues, *, radius: float = _NORMAL_RADIUS) -> np.ndarray:
    """Return the unit vector from the mean of the CA within ``radius`` to the CA of each residue.

    Parameters
    ----------
    residues : Residues
    radius : float
        Å, inclusive; the residue itself counts.

    Returns
    -------
    ndarray
        ``(N, 3)`` float64; 0 for a residue without neighbors. It approximates the normal of the molecular surface.
    """
    ca = residues.pos.astype(np.float64)
    j, i = radius_edges(ca, radius)
    count = np.bincount(i, minlength=len(ca)) + 1  # with the residue itself
    total = np.stack([np.bincount(i, (ca[i] - ca[j])[:, axis], len(ca)) for axis in range(3)], 1)
    return unit(total / count[:, None])


def probe_points(residues: Residues) -> np.ndarray:
    """Return the points :data:`PROBES` of each residue, at which its surroundings are measured.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N, 6, 3)`` float64, Å.
    """
    side, outward = sidechain_points(residues), outward_direction(residues)
    along = [side.center + distance * side.direction for distance in (4.0, 8.0)]
    away = [side.center + distance * outward for distance in (8.0, 14.0)]
    return np.stack([side.center, side.tip, *along, *away], 1)
