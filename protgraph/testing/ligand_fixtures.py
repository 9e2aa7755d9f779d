"""Small molecules around a generated protein, for featurizers that read ligands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph.structure import Residues
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.vectors import unit

__all__ = ["with_ligands"]

_ELEMENTS = ("C", "N", "O", "S", "P", "ZN", "FE", "CL")
_MOLECULE = 10  # atoms per molecule; the last may have fewer


def with_ligands(residues: Residues, atoms: int, *, seed: int) -> Residues:
    """Add ligand atoms 4 to 9 Å from CA atoms of a protein, in its floating type.

    Parameters
    ----------
    residues : Residues
    atoms : int
        Number of atoms; ten form a molecule.
    seed : int
        Seed of positions and elements.
    """
    rng = np.random.default_rng(seed)
    beside = residues.pos[rng.integers(0, len(residues), atoms)]
    pos = beside + rng.uniform(4, 9, (atoms, 1)) * unit(rng.normal(size=(atoms, 3)))
    molecule = np.arange(atoms) // _MOLECULE
    count = int(molecule.max(initial=-1)) + 1
    element = rng.choice(_ELEMENTS, atoms)
    ligands = Ligands(
        chain=np.full(count, residues.chain[0]),
        res_id=1000 + np.arange(count),
        ins_code=np.full(count, ""),
        res_name=np.full(count, "LIG"),
        atom_pos=pos.astype(residues.pos.dtype),
        atom_name=element.copy(),
        atom_element=element,
        atom_molecule=molecule,
    )
    return replace(residues, ligands=ligands)
