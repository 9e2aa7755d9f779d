"""Van der Waals radii, and contacts and clashes of atoms more than three bonds apart."""

# Not biotite's info.vdw_radius_single: it has Br at 1.83 Å, Bondi at 1.85 Å (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from protgraph.structure.chemistry.bonds import covalent_bonds
from protgraph.structure.neighbors.search import close_pairs
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import length

__all__ = ["VDW_RADII", "vdw_contacts", "vdw_radii"]

VDW_RADII = {
    "C": 1.70, "N": 1.55, "O": 1.52, "S": 1.80, "P": 1.80, "SE": 1.90, "F": 1.47, "CL": 1.75, "BR": 1.85, "I": 1.98,
    "SI": 2.10, "AS": 1.85, "TE": 2.06,
}  # fmt: skip
"""Van der Waals radii of elements, Å (Bondi 1964, doi:10.1021/j100785a001, table I); used everywhere in protgraph."""

_BONDS = 3  # atoms at most this many bonds apart are not in contact


def vdw_radii(atoms: Residues | Ligands) -> np.ndarray:
    """Return the van der Waals radius of each atom of residues or ligands by element.

    Returns ``(A,)`` float64, Å; elements without a value by Bondi have that of carbon.
    """
    elements, inverse = np.unique(atoms.atom_element, return_inverse=True)
    radii = np.array([VDW_RADII.get(str(element), VDW_RADII["C"]) for element in elements])
    return radii[inverse]


def vdw_contacts(residues: Residues, low: float, high: float) -> np.ndarray:
    """Return atom pairs of two residues with a gap ``low < d − (r_a + r_b) ≤ high``, more than three bonds apart.

    ``low``, ``high``: Å; for negative gaps the spheres overlap. Returns ``(2, P)`` int64 atoms a < b.
    """
    pos = residues.atom_pos.astype(np.float64)
    radius = vdw_radii(residues)
    largest_distance = 2 * radius.max(initial=0) + max(high, 0)
    pairs = close_pairs(pos, largest_distance)

    residue_a, residue_b = residues.atom_residue[pairs]
    pairs = pairs[:, residue_a != residue_b]
    a, b = pairs
    gap = length(pos[a] - pos[b]) - (radius[a] + radius[b])
    pairs = pairs[:, (gap > low) & (gap <= high)]

    a, b = pairs
    code_of_pair = a * len(pos) + b
    is_bonded = np.isin(code_of_pair, _bonded(covalent_bonds(residues), len(pos)))
    return pairs[:, ~is_bonded]


def _bonded(bonds: np.ndarray, n: int) -> np.ndarray:
    """Return codes ``a n + b`` of atoms a and b at most three bonds apart."""
    both_ways = np.concatenate([bonds, bonds[::-1]], axis=1)
    ones = np.ones(both_ways.shape[1], np.int32)
    step = coo_array((ones, tuple(both_ways)), shape=(n, n)).tocsr()
    reach = step
    for _ in range(_BONDS - 1):
        reach = reach @ step + reach
    reach = reach.tocoo()
    return reach.row.astype(np.int64) * n + reach.col
