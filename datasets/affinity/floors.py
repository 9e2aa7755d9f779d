"""Floors of ``affinity``: numbers of a complex that predict pK without any model of the interaction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from biotite.structure import AtomArray, info, sasa

from protgraph.errors import SelectionError
from protgraph.structure import Ligands, Residues
from protgraph.structure.chemistry import vdw_radii

__all__ = ["FLOORS", "ComplexSize", "buried_area", "complex_size", "predict_by_line"]

#: Field of :class:`ComplexSize` → name of the floor on the card.
FLOORS = {
    "heavy_atoms": "ligand heavy atoms",
    "weight": "ligand weight (heavy atoms)",
    "buried_area": "buried area",
}
_PROBE = 1.4  # Å, radius of a water molecule
_POINTS = 500  # on the sphere of each atom


@dataclass(frozen=True)
class ComplexSize:
    """Size of a ligand and of its interface with the pocket.

    Parameters
    ----------
    heavy_atoms : int
        Heavy atoms of the ligand, with metal ions that are part of it.
    weight : float
        Sum of their masses, Da.
    buried_area : float
        Å², see :func:`buried_area`.
    """

    heavy_atoms: int
    weight: float
    buried_area: float


def complex_size(residues: Residues) -> ComplexSize:
    """Return the sizes of a complex, read with its ligands.

    Raises
    ------
    SelectionError
        There is no ligand.
    """
    ligands = residues.ligands
    if ligands is None or not len(ligands):
        raise SelectionError(f"{residues.name}: no ligand. Give a file with its ligand, e.g. of the dataset affinity.")
    weight = sum(info.mass(element, is_residue=False) for element in ligands.atom_element.tolist())
    return ComplexSize(len(ligands.atom_element), float(weight), buried_area(residues, ligands))


def buried_area(residues: Residues, ligands: Ligands) -> float:
    """Return the solvent-accessible area that disappears when ligands bind: ligands + protein − complex, Å².

    Notes
    -----
    Areas by Shrake & Rupley's method (biotite), with a probe of 1.4 Å and Bondi's radii; other elements have that of
    carbon. Both sides count, so half of it is the area of the interface.
    """
    radius = vdw_radii(residues)
    ligand_radius = vdw_radii(ligands)
    protein = _area(residues.atom_pos, radius)
    ligand = _area(ligands.atom_pos, ligand_radius)
    pos = np.concatenate([residues.atom_pos, ligands.atom_pos])
    both = _area(pos, np.concatenate([radius, ligand_radius]))
    return protein + ligand - both


def _area(pos: np.ndarray, radius: np.ndarray) -> float:
    """Return the accessible area of spheres, Å²; ``pos`` ``(A, 3)``, ``radius`` ``(A,)``, Å."""
    atoms = AtomArray(len(pos))
    atoms.coord = pos.astype(np.float32)
    atoms.element[:] = "C"  # not used: the radii are given
    area = sasa(atoms, _PROBE, ignore_ions=False, point_number=_POINTS, vdw_radii=radius)
    return float(area.sum())


def predict_by_line(train_x: np.ndarray, train_y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Fit ``y = a x + b`` by least squares on train, ``(T,)`` each, and return it at ``x``, ``(N,)``."""
    slope, offset = np.polyfit(train_x, train_y, 1)
    return slope * x + offset
