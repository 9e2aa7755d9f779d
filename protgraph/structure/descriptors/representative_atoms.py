"""One point a residue: CA, CB, or the center of its side chain."""

from __future__ import annotations

import numpy as np

from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["beta_carbon", "cb_or_ca", "sidechain_centroid"]

_NO_SIDECHAIN = (*BACKBONE, "OXT")


def cb_or_ca(residues: Residues) -> np.ndarray:
    """CB where the file has it, else the virtual one, else (N or C missing too) CA.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N, 3)`` float64, Å.

    References
    ----------
    See :func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`.
    """
    point = beta_carbon(residues)
    return np.where(np.isnan(point), residues.pos, point)


def beta_carbon(residues: Residues) -> np.ndarray:
    """CB as in :func:`cb_or_ca`, but NaN, not CA, where there is neither CB nor N and C: ``(N, 3)`` float64, Å."""
    point = virtual_cb(residues.backbone)
    own = np.flatnonzero(residues.atom_name == "CB")[::-1]  # backwards, so that the first is written last
    point[residues.atom_residue[own]] = residues.atom_pos[own]
    return point


def sidechain_centroid(residues: Residues) -> np.ndarray:
    """The mean of each residue's side-chain heavy atoms, ``(N, 3)`` float64, Å; CA where it has none (glycine)."""
    own = np.flatnonzero(~np.isin(residues.atom_name, _NO_SIDECHAIN))
    owner, n = residues.atom_residue[own], len(residues)
    center = residues.pos.astype(np.float64)  # sums are taken about CA: no rounding far from the origin
    away = residues.atom_pos[own].astype(np.float64) - center[owner]
    total = np.stack([np.bincount(owner, away[:, axis], n) for axis in range(3)], 1)
    return center + total / np.maximum(np.bincount(owner, minlength=n), 1)[:, None]
