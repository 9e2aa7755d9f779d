"""One point per residue: CB or the center of the side chain."""

from __future__ import annotations

import numpy as np

from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["beta_carbon", "cb_or_ca", "sidechain_centroid"]

_NO_SIDECHAIN = (*BACKBONE, "OXT")


def cb_or_ca(residues: Residues) -> np.ndarray:
    """Return CB of the file, else the virtual CB, else (without N or C) CA.

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
    """Return CB of the file, else the virtual CB, else NaN, ``(N, 3)`` float64, Å."""
    point = virtual_cb(residues.backbone)
    atoms = np.flatnonzero(residues.atom_name == "CB")[::-1]  # backwards, so that the first is written last
    point[residues.atom_residue[atoms]] = residues.atom_pos[atoms]
    return point


def sidechain_centroid(residues: Residues) -> np.ndarray:
    """Return the mean of the side-chain heavy atoms of each residue, or CA without any, ``(N, 3)`` float64, Å."""
    atoms = np.flatnonzero(~np.isin(residues.atom_name, _NO_SIDECHAIN))
    owner, n = residues.atom_residue[atoms], len(residues)
    center = residues.pos.astype(np.float64)  # sums relative to CA avoid rounding far from the origin
    offset = residues.atom_pos[atoms].astype(np.float64) - center[owner]
    total = np.stack([np.bincount(owner, offset[:, axis], n) for axis in range(3)], 1)
    return center + total / np.maximum(np.bincount(owner, minlength=n), 1)[:, None]
