"""Which residues lie about ligands: sequences are told how sure the model is of these."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure import Residues
from protgraph.structure.descriptors.backbone_geometry import virtual_cb

__all__ = ["LIGAND_DISTANCE", "near_ligands"]

LIGAND_DISTANCE = 8.0
"""Å, from the virtual CB to an atom of a ligand (Dauparas et al. 2025, the program's ``cutoff_for_score``)."""


def near_ligands(residues: Residues) -> np.ndarray:
    """Which residues have a heavy atom of a ligand less than 8 Å from their virtual CB.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N,)`` bool; False for residues without N, CA or C, and everywhere where residues were read without ligands.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1 (ligand confidence).
    """
    near = np.zeros(len(residues), bool)
    rows = np.flatnonzero(residues.backbone_mask[:, :3].all(1))
    if residues.ligands is not None and len(residues.ligands.atom_pos) and len(rows):
        near[rows] = cKDTree(residues.ligands.atom_pos).query(virtual_cb(residues.backbone[rows]))[0] < LIGAND_DISTANCE
    return near
