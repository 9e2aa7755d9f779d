"""Structure: one model of a structure file as a biotite AtomArray, with a loss report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import OptionError, SelectionError, list_first
from protgraph.structure.residues.loss_report import LossReport
from protgraph.wording import html_table

__all__ = ["MOLECULE", "Structure", "residue_starts", "select_chains"]


MOLECULE = "molecule"
"""Annotation of atoms in files where TER or ``label_asym_id`` separates atoms of one chain id: a number from 0."""


@dataclass(frozen=True, eq=False)
class Structure:
    """One model of a structure file with all of its molecules.

    Parameters
    ----------
    name : str
        Name of the file without suffixes, e.g. "1ubq".
    atoms : AtomArray
        Protein, ligands, nucleic acids, waters and hydrogens, with annotations ``b_factor`` and ``occupancy``.
    source : str
        Path of the file.
    format : str
        "pdb", "mmcif" or "bcif", detected from content; "biotite" for atoms from memory.
    report : LossReport
        Counts of what is in the file and not in ``atoms``.
    predicted : bool
        True if the file declares that its B factors are the confidence of a prediction (pLDDT).
    """

    name: str
    atoms: AtomArray
    source: str
    format: str
    report: LossReport
    predicted: bool = False

    def __repr__(self) -> str:
        return f"Structure({self.name!r}, {len(self.atoms)} atoms, {self.format})"

    def _repr_html_(self) -> str:
        """Return the chains with their numbers of residues and atoms as a table, for notebooks."""
        starts = self.atoms.chain_id[residue_starts(self.atoms)]
        rows = [
            (name or "blank", int((starts == name).sum()), int((self.atoms.chain_id == name).sum()))
            for name in dict.fromkeys(starts.tolist())
        ]
        title = f"Structure {self.name}, {len(self.atoms)} atoms, {self.format}"
        return html_table(title, ["chain", "residues and molecules", "atoms"], rows)


def select_chains(structure: Structure, chains: Sequence[str]) -> Structure:
    """Return the named chains with all their molecules; the report counts the residues of the others.

    Raises :class:`SelectionError` if the structure does not have a chain.
    """
    names = [chains] if isinstance(chains, str) else list(chains)
    if not names:
        raise OptionError("chains = []. Allowed: one chain id or more, or None for all chains.")
    atoms = structure.atoms
    starts = residue_starts(atoms)
    chain = atoms.chain_id[starts]
    available = list(dict.fromkeys(chain.tolist()))
    for name in names:
        if name not in available:
            listed = list_first(list(map(repr, available)), 40)
            raise SelectionError(
                f"{structure.source or structure.name}: no chain {name!r}. The structure has {listed}."
            )
    others, counts = np.unique(chain[~np.isin(chain, names)], return_counts=True)
    report = LossReport(excluded_chains=dict(zip(others.tolist(), counts.tolist(), strict=True)))
    selected = atoms[np.isin(atoms.chain_id, names)] if len(others) else atoms
    return replace(structure, atoms=selected, report=structure.report.merge(report))


def residue_starts(atoms: AtomArray) -> np.ndarray:
    """Return the first atom of each run of equal chain, number, insertion code and residue name, ``(R,)`` int64."""
    if len(atoms) == 0:
        return np.zeros(0, np.int64)
    is_start = np.zeros(len(atoms), bool)
    is_start[0] = True
    for column in (atoms.res_id, atoms.chain_id, atoms.ins_code, atoms.res_name):
        is_start[1:] |= column[1:] != column[:-1]
    return is_start.nonzero()[0]
