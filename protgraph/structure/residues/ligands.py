"""Molecules besides the protein: cofactors, inhibitors, saccharides, ions and, on request, nucleotides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.residues.identity import residue_ids

__all__ = ["Ligands", "gather_ligands"]

_DUMMY = "DUM"  # dummy atom of the CCD: in files of OPM, thousands of them mark the planes of the membrane


@dataclass(frozen=True, eq=False)
class Ligands:
    """M molecules and their A heavy atoms, in file order; each nucleotide of a nucleic acid is a molecule.

    Parameters
    ----------
    chain, ins_code, res_name : ndarray
        ``(M,)`` str, author chain id, insertion code and residue name.
    res_id : ndarray
        ``(M,)`` int64, author number.
    atom_pos : ndarray
        ``(A, 3)`` float32, Å.
    atom_name, atom_element : ndarray
        ``(A,)`` str.
    atom_molecule : ndarray
        ``(A,)`` int64 ascending, molecule of each atom.
    """

    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    res_name: np.ndarray
    atom_pos: np.ndarray
    atom_name: np.ndarray
    atom_element: np.ndarray
    atom_molecule: np.ndarray

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
        return replace(self, **rows, **atom_rows, atom_molecule=(np.cumsum(keep) - 1)[self.atom_molecule[atoms]])


def gather_ligands(atoms: AtomArray, start: np.ndarray, run: np.ndarray, chosen: np.ndarray) -> Ligands:
    """Return the selected molecules of an atom array.

    Parameters
    ----------
    start, run : ndarray
        ``(R,)`` first atom of each run of atoms of one residue, and ``(A,)`` run of each atom.
    chosen : ndarray
        ``(R,)`` bool, runs to return; those without a heavy atom and dummy atoms are left out.
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
    )
