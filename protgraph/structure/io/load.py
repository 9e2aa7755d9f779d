"""Structure files to atoms: one model, alternate locations resolved, everything else kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import EmptyStructureError, StructureFileError
from protgraph.structure.io.accession import as_accession
from protgraph.structure.io.altloc import altloc_mask, check_altloc, group_residues
from protgraph.structure.io.fasta import is_fasta
from protgraph.structure.io.fetch import fetch
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.structure import Structure, residue_starts, select_chains

__all__ = ["MAX_COORDINATE", "load_structure", "settle"]

MAX_COORDINATE = 1e5
"""Largest usable coordinate, Å: what the PDB format can hold; float32 resolves 0.01 Å there."""


def load_structure(
    path: str | os.PathLike[str],
    *,
    model: int = 1,
    chains: Sequence[str] | None = None,
    assembly: str | None = None,
    altloc: str = "occupancy",
) -> Structure:
    """Read a PDB, mmCIF or BinaryCIF file, gzipped or not, recognized by content.

    Parameters
    ----------
    path : str or PathLike
        The file, or "pdb:1ubq" or "af:P69905" for one of an archive (see :func:`protgraph.structure.io.fetch`).
    model : int
        Model by its place in the file, from 1.
    chains : sequence of str, optional
        Author chain ids to keep, with everything that is in them; None keeps all.
    assembly : str, optional
        Biological assembly to build, "1" say; its copies of chain A are "A", "A-2", …. None takes the asymmetric
        unit as deposited.
    altloc : str
        Which alternate location of a residue: "occupancy" (the highest, by the sum over the residue), "first",
        or an id such as "B".

    Returns
    -------
    Structure

    Raises
    ------
    StructureFileError
        Where the file is missing or cannot be read.
    SelectionError
        Where the model, a chain or the assembly is not there.
    EmptyStructureError
        Where no atoms are there.

    Examples
    --------
    >>> structure = load_structure(path)  # doctest: +SKIP
    >>> structure.report.lines()  # doctest: +SKIP
    ['37 other models left out']
    """
    check_altloc(altloc)
    if (accession := as_accession(path)) is not None:
        path = fetch(accession)
    if is_fasta(path):
        raise StructureFileError(f"{path} is FASTA, sequences without atoms; read it with protgraph.load_fasta")
    parsed = read_atoms(path, model=model, assembly=assembly)
    report = LossReport(models=parsed.models - 1, warnings=parsed.warnings)
    name = Path(Path(path).name.removesuffix(".gz")).stem
    found = settle(parsed.atoms, name=name, source=str(path), form=parsed.format, altloc=altloc, report=report)
    found = replace(found, predicted=parsed.predicted)
    return found if chains is None else select_chains(found, chains)


def settle(
    atoms: AtomArray, *, name: str, source: str, form: str, altloc: str = "occupancy", report: LossReport
) -> Structure:
    """A structure of the atoms with usable coordinates in one conformation a residue.

    Parameters
    ----------
    atoms : AtomArray
        With ``occupancy`` and ``altloc_id`` ("" where the atom has one location), which is taken off.
    name, source, form, altloc
        As :class:`Structure` and :func:`load_structure` have them; ``form`` is the format.
    report : LossReport
        What was left out before; extended.

    Raises
    ------
    EmptyStructureError
        Where no atom has usable coordinates.
    """
    usable = (np.abs(atoms.coord) <= MAX_COORDINATE).all(axis=1)  # False for NaN
    if not usable.any():
        raise EmptyStructureError(f"{source or name}: none of {len(atoms)} atoms has usable coordinates")
    keep = usable.copy()
    if (atoms.altloc_id != "").any():
        keep &= altloc_mask(atoms.altloc_id, atoms.occupancy, _residue_of_atoms(atoms), altloc=altloc)
    atoms.del_annotation("altloc_id")
    left_out = LossReport(invalid_atoms=int((~usable).sum()), altloc_atoms=int((usable & ~keep).sum()))
    return Structure(name, atoms if keep.all() else atoms[keep], source, form, report.merge(left_out))


def _residue_of_atoms(atoms: AtomArray) -> np.ndarray:
    """``(A,)`` int64, equal where chain, number and insertion code are, wherever the atoms stand."""
    starts = residue_starts(atoms)
    number = group_residues(atoms.chain_id[starts], atoms.res_id[starts], atoms.ins_code[starts])
    return np.repeat(number, np.diff(starts, append=len(atoms)))
