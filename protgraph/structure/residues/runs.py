"""Runs of consecutive atoms of one residue: their names, kinds and backbone atoms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.residues.alphabet import KINDS, name_numbers
from protgraph.structure.residues.identity import run_lengths
from protgraph.structure.residues.residues import BACKBONE, CA
from protgraph.structure.residues.structure import residue_starts
from protgraph.structure.vectors import length

__all__ = ["LEAST_CA_DISTANCE", "Runs", "backbone_of", "backbone_slots", "split_repeats", "tabulate_runs"]

LEAST_CA_DISTANCE = 2.5
"""CA atoms that are closer, Å, are conformations of one residue; neighbors are 2.9 (cis) or 3.8 (trans) apart."""

_PROTEIN, _OTHER = KINDS.index("protein"), KINDS.index("other")


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of consecutive atoms of one residue, one row per run.

    ``start`` ``(R,)`` first atom; ``run`` and ``slot`` ``(A,)`` run and index in the backbone of each atom, −1 for
    others; ``coord`` ``(A, 3)``; ``name`` ``(R,)`` str; ``kind`` ``(R,)`` int64, index in ``KINDS``; ``amino_acid``
    ``(R,)`` int64, ``aatype`` of unmodified residues, −1 for all others; ``hetero`` ``(R,)`` bool.
    """

    start: np.ndarray
    run: np.ndarray
    slot: np.ndarray
    coord: np.ndarray
    name: np.ndarray
    kind: np.ndarray
    amino_acid: np.ndarray
    hetero: np.ndarray

    @cached_property
    def backbone(self) -> np.ndarray:
        """N, CA, C, O of each run, ``(R, 4, 3)`` float32, Å, NaN for missing atoms."""
        return backbone_of(self.coord, self.slot, self.run, len(self.start))

    @property
    def is_candidate(self) -> np.ndarray:
        """True for runs that are peptide-linking by name, or unknown by name and with N, CA and C, ``(R,)`` bool."""
        is_protein = self.kind == _PROTEIN
        is_other = self.kind == _OTHER
        if not is_other.any():  # as in most files
            return is_protein
        has_ca = is_other[self.run] & (self.slot == CA)
        if not has_ca.any():
            return is_protein
        has_n_ca_c = ~np.isnan(self.backbone[:, :3, 0]).any(axis=1)
        return is_protein | (is_other & has_n_ca_c)


def tabulate_runs(atoms: AtomArray, slot: np.ndarray) -> Runs:
    """Return the runs of atoms of equal chain, number, insertion code and residue name, from the ``slot (A,)`` of each.

    Two neighbors of one number and name are two runs (:func:`split_repeats`).
    """
    start = residue_starts(atoms)
    run = np.arange(len(start)).repeat(run_lengths(start, len(atoms)))
    run_of_ca = run[slot == CA]
    if (run_of_ca[1:] == run_of_ca[:-1]).any():
        start = split_repeats(atoms.atom_name, atoms.coord, start)
        run = np.arange(len(start)).repeat(run_lengths(start, len(atoms)))
    name = atoms.res_name[start]
    kind, amino_acid = name_numbers(name.tolist())
    return Runs(start, run, slot, atoms.coord, name, kind, amino_acid, atoms.hetero[start])


def backbone_slots(atom_name: np.ndarray, element: np.ndarray) -> np.ndarray:
    """Return the index of each atom in :data:`BACKBONE`, ``(A,)`` int8, -1 for others and for calcium.

    ``atom_name`` and ``element`` ``(A,)`` are str.
    """
    slot = np.full(len(atom_name), -1, np.int8)
    for i, name in enumerate(BACKBONE):
        slot[atom_name == name] = i
    slot[(slot == CA) & (element == "CA")] = -1
    return slot


def backbone_of(coord: np.ndarray, slot: np.ndarray, residue: np.ndarray, size: int) -> np.ndarray:
    """Return N, CA, C, O of each residue, ``(size, 4, 3)`` float32, Å, NaN if missing; the first of a name counts.

    ``coord`` ``(A, 3)``; ``slot`` and ``residue`` ``(A,)``.
    """
    # The atom of each place in the backbone; the row behind all atoms is NaN, for places without one.
    missing = len(coord)
    atom = np.full(size * len(BACKBONE), missing)
    atoms = np.flatnonzero(slot >= 0)[::-1]  # backwards, so that the first is written last
    atom[residue[atoms] * len(BACKBONE) + slot[atoms]] = atoms
    rows = np.empty((missing + 1, 3), np.float32)
    rows[:missing] = coord
    rows[missing] = np.nan
    return rows.take(atom, axis=0).reshape(size, len(BACKBONE), 3)


def split_repeats(atom_name: np.ndarray, coord: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the first atoms of runs, split where a run is several residues of one number and name.

    They are in files that lost their insertion codes, and where a chain begins with the number and name with which the
    one before ends.

    ``atom_name``, ``coord``: ``(A,)`` str and ``(A, 3)``, Å. ``start``: ``(R,)`` int64, first atom of each run. Returns
    ``(R',)`` int64.

    A further residue begins where an atom N, CA or C is repeated. All residues of a run have the same ones of these
    atoms, and their CA atoms are at least 2.5 Å apart; otherwise the repeated atoms are conformations without altloc
    ids, and the run stays one residue.
    """
    ca_atoms = np.flatnonzero(atom_name == "CA")
    run = np.searchsorted(start, ca_atoms, side="right") - 1
    is_repeated = run[1:] == run[:-1]
    stop = np.append(start[1:], len(atom_name))
    further: list[int] = []
    for number in np.unique(run[1:][is_repeated]).tolist():
        first = int(start[number])
        names_of_run = atom_name[first : stop[number]].tolist()
        begins, name_sets = _repeated_backbones(names_of_run)
        ca_of_run = ca_atoms[run == number]
        are_alike = all(names == name_sets[0] for names in name_sets) and len(ca_of_run) == len(name_sets)
        steps = length(np.diff(coord[ca_of_run].astype(np.float64), axis=0))
        if are_alike and (steps >= LEAST_CA_DISTANCE).all():
            further += [first + begin for begin in begins]
    return np.sort(np.concatenate([start, np.array(further, np.int64)]))


def _repeated_backbones(names: list[str]) -> tuple[list[int], list[set[str]]]:
    """Return where names N, CA or C are repeated, and which of them each part has."""
    begins: list[int] = []
    name_sets: list[set[str]] = [set()]
    for i, name in enumerate(names):
        if name not in ("N", "CA", "C"):
            continue
        if name in name_sets[-1]:
            begins.append(i)
            name_sets.append(set())
        name_sets[-1].add(name)
    return begins, name_sets
