"""Molecules besides the protein: cofactors, inhibitors, saccharides, ions and, on request, nucleotides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.residues.identity import residue_ids

__all__ = ["Ligands", "gather_ligands"]

_DUMMY = "DUM"  # dummy atom of the CCD: in files of OPM, thousands of them mark the planes of the membrane


@dataclass(frozen=True, eq=False)
class Ligands:
    """M molecules and their A heavy atoms, in file order; each nucleotide of a nucleic acid is a molecule.

    ``chain``, ``ins_code``, ``res_name``: ``(M,)`` str, author chain id, insertion code and residue name. ``res_id``:
    ``(M,)`` int64, author number. ``atom_pos``: ``(A, 3)`` float32, Å. ``atom_name``, ``atom_element``: ``(A,)`` str.
    ``atom_molecule``: ``(A,)`` int64 ascending, molecule of each atom. ``bonds``: ``(B, 2)`` int64, bonded atoms within
    molecules that the file states; the dictionary's bonds are not among them.
    """

    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    res_name: np.ndarray
    atom_pos: np.ndarray
    atom_name: np.ndarray
    atom_element: np.ndarray
    atom_molecule: np.ndarray
    bonds: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def __len__(self) -> int:
        return len(self.res_id)

    @property
    def ids(self) -> list[str]:
        """Readable ids, e.g. "A:401"."""
        return residue_ids(self.chain, self.res_id, self.ins_code)

    def select(self, keep: np.ndarray) -> Ligands:
        """Return the molecules with ``keep`` ``(M,)`` bool True."""
        atoms = keep[self.atom_molecule]
        rows = {name: getattr(self, name)[keep] for name in ("chain", "res_id", "ins_code", "res_name")}
        atom_rows = {name: getattr(self, name)[atoms] for name in ("atom_pos", "atom_name", "atom_element")}
        atom_molecule = (np.cumsum(keep) - 1)[self.atom_molecule[atoms]]
        bonds = self.bonds[keep[self.atom_molecule[self.bonds[:, 0]]]]
        bonds = (np.cumsum(atoms) - 1)[bonds]
        return replace(self, **rows, **atom_rows, atom_molecule=atom_molecule, bonds=bonds)


def gather_ligands(atoms: AtomArray, start: np.ndarray, run: np.ndarray, chosen: np.ndarray) -> Ligands:
    """Return the selected molecules of an atom array.

    ``start``, ``run``: ``(R,)`` first atom of each run of atoms of one residue, and ``(A,)`` run of each atom.
    ``chosen``: ``(R,)`` bool, runs to return; those without a heavy atom and dummy atoms are left out.
    """
    is_molecule = ~np.isin(atoms.element, ("H", "D", "T")) & (atoms.res_name != _DUMMY)
    rows = np.flatnonzero(chosen[run] & is_molecule)
    runs, molecule = np.unique(run[rows], return_inverse=True)
    head = start[runs]
    return Ligands(
        chain=atoms.chain_id[head],
        res_id=atoms.res_id[head].astype(np.int64),
        ins_code=atoms.ins_code[head],
        res_name=atoms.res_name[head],
        atom_pos=atoms.coord[rows].astype(np.float32),
        atom_name=atoms.atom_name[rows],
        atom_element=atoms.element[rows],
        atom_molecule=molecule.astype(np.int64),
        bonds=_stated_bonds(atoms, rows, molecule),
    )


def _stated_bonds(atoms: AtomArray, rows: np.ndarray, molecule: np.ndarray) -> np.ndarray:
    """Return the bonds of an atom array within molecules, ``(B, 2)`` int64, between the atoms ``rows`` ``(A,)``."""
    if atoms.bonds is None or len(rows) == 0:
        return np.zeros((0, 2), np.int64)
    pairs = atoms.bonds.as_array()[:, :2].astype(np.int64)
    place = np.full(len(atoms), -1)
    place[rows] = np.arange(len(rows))
    pairs = place[pairs]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    return pairs[molecule[pairs[:, 0]] == molecule[pairs[:, 1]]]
