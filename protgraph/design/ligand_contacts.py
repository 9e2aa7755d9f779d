"""Find residues near ligands, which define the ligand confidence of a design."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure import Residues
from protgraph.structure.descriptors.backbone_geometry import virtual_cb

__all__ = ["LIGAND_DISTANCE", "near_ligands"]

LIGAND_DISTANCE = 8.0
"""Å, from the virtual CB to a ligand atom (Dauparas et al. 2025, ``cutoff_for_score`` of the program)."""


def near_ligands(residues: Residues) -> np.ndarray:
    """Find residues with a heavy ligand atom less than 8 Å from their virtual CB.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N,)`` bool; False for residues without N, CA or C, and for all residues that were read without ligands.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1 (ligand confidence).
    """
    near = np.zeros(len(residues), bool)
    rows = np.flatnonzero(residues.backbone_mask[:, :3].all(1))
    if residues.ligands is not None and len(residues.ligands.atom_pos) and len(rows):
        near[rows] = cKDTree(residues.ligands.atom_pos).query(virtual_cb(residues.backbone[rows]))[0] < LIGAND_DISTANCE
    return near
