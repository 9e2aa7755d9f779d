"""Van der Waals radii of elements."""

# Not biotite's info.vdw_radius_single: it has Br at 1.83 Å, Bondi at 1.85 Å (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

import numpy as np

from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.residues import Residues

__all__ = ["VDW_RADII", "vdw_radii"]

VDW_RADII = {
    "C": 1.70, "N": 1.55, "O": 1.52, "S": 1.80, "P": 1.80, "SE": 1.90, "F": 1.47, "CL": 1.75, "BR": 1.85, "I": 1.98,
    "SI": 2.10, "AS": 1.85, "TE": 2.06,
}  # fmt: skip
"""Van der Waals radii of elements, Å (Bondi 1964, doi:10.1021/j100785a001, table I); used everywhere in protgraph."""


def vdw_radii(atoms: Residues | Ligands) -> np.ndarray:
    """Return the van der Waals radius of each atom of residues or ligands by element.

    Returns ``(A,)`` float64, Å; elements without a value by Bondi have that of carbon.
    """
    elements, inverse = np.unique(atoms.atom_element, return_inverse=True)
    radii = np.array([VDW_RADII.get(str(element), VDW_RADII["C"]) for element in elements])
    return radii[inverse]
