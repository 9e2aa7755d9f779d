"""One value per residue, and its place on the atoms of a structure file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.io.altloc import group_residues, name_blank_conformations
from protgraph.structure.io.polymers import Identity
from protgraph.structure.residues.residues import Residues

__all__ = ["ResidueValues", "has_other_identities", "identities_of_runs", "renamed_identities", "rows_of_runs"]

PERCENT = 100.0


@dataclass(frozen=True, eq=False)
class ResidueValues:
    """One value for each of N residues of a structure file.

    Parameters
    ----------
    name : str
        Name of the value, e.g. "p_site".
    chain, res_id, ins_code, res_name : ndarray
        ``(N,)`` identity of the residues, as in :class:`protgraph.Residues`.
    values : ndarray
        ``(N,)`` float64; NaN for a residue without a value.
    is_probability : bool
        True for values from 0 to 1. B factors are then 100 times the values, as pLDDT.
    classes : tuple of str
        Names of the classes whose index is the value; empty for numbers.
    origin : tuple of str
        Model, task and version, one text each, for the headers of written files.
    """

    name: str
    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    res_name: np.ndarray
    values: np.ndarray
    is_probability: bool = False
    classes: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def scale(self) -> float:
        """Factor from values to B factors: 100 for probabilities, else 1."""
        return PERCENT if self.is_probability else 1.0

    @property
    def b_factor(self) -> np.ndarray:
        """Values as they are written to B factors, ``(N,)`` float64: probabilities in percent."""
        return self.values * self.scale

    @property
    def class_lines(self) -> tuple[str, ...]:
        """Number and name of each class, one text each."""
        return tuple(f"class {number}: {name}" for number, name in enumerate(self.classes))

    @property
    def details(self) -> tuple[str, ...]:
        """Description of the written B factors, one short line each."""
        known = self.b_factor[~np.isnan(self.values)]
        scale = " in percent (100 x probability)" if self.is_probability else ""
        lines = [f"B factors are {self.name}{scale}", *self.origin, *self.class_lines]
        if len(known):
            lines.append(f"range {known.min():.6g} to {known.max():.6g}")
        return (*lines, f"{len(known)} residues have a value, all others have 0")


def identities_of_runs(atoms: AtomArray, start: np.ndarray) -> list[Identity]:
    """Return chain, number and insertion code of each run of atoms of one residue, as in the file.

    Parameters
    ----------
    atoms : AtomArray
        All atoms of a model.
    start : ndarray
        ``(R,)`` int64, first atom of each run, see :func:`~protgraph.structure.io.polymers.run_starts`.
    """
    return _identities(atoms.chain_id[start], atoms.res_id[start], atoms.ins_code[start])


def has_other_identities(identity: Sequence[Identity], values: ResidueValues) -> bool:
    """Return True if a residue of the values has an identity that no run of the file has, e.g. chain "A-2"."""
    return not set(identity).issuperset(_identities(values.chain, values.res_id, values.ins_code))


def renamed_identities(
    atoms: AtomArray, start: np.ndarray, identity: Sequence[Identity], residues: Residues
) -> list[Identity]:
    """Return the identities that residues have after reading, e.g. with chain "A-2", of each run of atoms.

    A run has the identity of the residue with the same CA atom; runs without one have that of the latest run that had
    the same identity in the file.

    Parameters
    ----------
    atoms, start
        As in :func:`identities_of_runs`.
    identity : sequence of Identity
        Result of :func:`identities_of_runs`.
    residues : Residues
        All residues of the file, see :func:`protgraph.structure.clean`.
    """
    at_position: dict[bytes, list[Identity]] = {}
    keys = _identities(residues.chain, residues.res_id, residues.ins_code)
    for key, position in zip(keys, residues.pos, strict=True):
        at_position.setdefault(position.tobytes(), []).append(key)
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(atoms)))
    at_ca: dict[int, Identity] = {}
    for atom in np.flatnonzero(atoms.atom_name == "CA").tolist():
        number = int(run[atom])
        found = at_position.get(atoms.coord[atom].astype(np.float32).tobytes())
        if found and number not in at_ca:
            at_ca[number] = found.pop(0)
    renamed, latest = [], {}
    for number, key in enumerate(identity):
        latest[key] = at_ca.get(number, latest.get(key, key))
        renamed.append(latest[key])
    return renamed


def rows_of_runs(
    atoms: AtomArray, start: np.ndarray, values: ResidueValues, identity: Sequence[Identity]
) -> np.ndarray:
    """Return the row in the values of the residue of each run of atoms, ``(R,)`` int64, −1 without one.

    Every atom of a residue has its value, of all alternate locations and hydrogens too. A molecule of another name with
    the same chain, number and insertion code has none, unless it is an alternate location.

    Parameters
    ----------
    atoms : AtomArray
        All atoms of a model, with annotation ``altloc_id``.
    start : ndarray
        As in :func:`identities_of_runs`.
    values : ResidueValues
    identity : sequence of Identity
        Of each run.
    """
    row_of = {key: i for i, key in enumerate(_identities(values.chain, values.res_id, values.ins_code))}
    row = np.array([row_of.get(key, -1) for key in identity])
    same_name = atoms.res_name[start] == values.res_name[row]
    residue = group_residues(atoms.chain_id[start], atoms.res_id[start], atoms.ins_code[start])
    residue_of_atom = np.repeat(residue, np.diff(start, append=len(atoms)))
    ids = name_blank_conformations(atoms.altloc_id, atoms.atom_name, atoms.res_name, residue_of_atom)
    has_altloc = np.logical_or.reduceat(ids != "", start)
    return np.where(same_name | has_altloc, row, -1)


def _identities(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> list[Identity]:
    return list(zip(chain.tolist(), res_id.tolist(), ins_code.tolist(), strict=True))
