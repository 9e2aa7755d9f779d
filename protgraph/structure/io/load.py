"""Structure files to atoms: one model with alternate locations resolved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
from biotite.structure import AtomArray

from protgraph.argument_types import check_arguments
from protgraph.errors import EmptyStructureError, StructureFileError
from protgraph.structure.io.altloc import (
    altloc_mask,
    check_altloc,
    group_residues,
    name_blank_conformations,
    separate_copies,
)
from protgraph.structure.io.archives import as_accession, fetch
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.io.registered_readers import entry_name
from protgraph.structure.io.sniff import FileContent, is_fasta, read_file
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.structure import Structure, residue_starts, select_chains

__all__ = ["MAX_COORDINATE", "load_structure", "resolve_atoms"]

MAX_COORDINATE = 1e5
"""Largest usable coordinate, Å: what the PDB format can hold; float32 resolves 0.01 Å there."""


@check_arguments("path", "model_number", "chains", "assembly", "altloc")
def load_structure(
    path: str | os.PathLike[str] | FileContent,
    *,
    model_number: int = 1,
    chains: str | Sequence[str] | None = None,
    assembly: str | None = None,
    altloc: str = "occupancy",
) -> Structure:
    r"""Read a PDB, mmCIF or BinaryCIF file, or one of a registered format, gzipped or not, recognized by content.

    Parameters
    ----------
    path : str, PathLike or FileContent
        The file or its content, "pdb:1ubq" or "af:P69905" for an archive entry
        (see :func:`protgraph.structure.io.fetch`), or "db:name" for an entry of the container ``db``, e.g. of a
        foldcomp database.
    model_number : int
        Model by its place in the file, from 1.
    chains : str or sequence of str, optional
        Author chain ids to keep, with all of their molecules; None keeps all.
    assembly : str, optional
        Biological assembly to build, e.g. "1"; its copies of chain A are "A", "A-2", …. None keeps the asymmetric
        unit as deposited.
    altloc : str
        Alternate location per residue: "occupancy" (the highest, summed over the residue), "first",
        or an id such as "B".

    Returns
    -------
    Structure

    Raises
    ------
    StructureFileError
        The file is missing or cannot be read.
    SelectionError
        The file lacks the model, a chain or the assembly.
    EmptyStructureError
        The file holds no atoms.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "gly.pdb")
    >>> atom = "ATOM      1  CA {}GLY A   1      11.104   6.134  -6.504  0.50  0.00           C"
    >>> _ = path.write_text(f"{atom.format('A')}\n{atom.format('B')}\n")
    >>> structure = load_structure(path)
    >>> structure
    Structure('gly', 1 atoms, pdb)
    >>> structure.report.lines()
    ['1 atom of alternate locations left out']
    """
    check_altloc(altloc)
    if not isinstance(path, FileContent) and (accession := as_accession(path)) is not None:
        path = fetch(accession)
    file = read_file(path)
    if is_fasta(file):
        raise StructureFileError(
            f"{file.path}: FASTA, sequences without atoms. Give a structure file; protgraph.load_fasta reads FASTA."
        )
    parsed = read_atoms(file, model=model_number, assembly=assembly)
    report = LossReport(models=parsed.models - 1, inferred_elements=parsed.inferred_elements, warnings=parsed.warnings)
    name = entry_name(file.path)
    name = PurePath(name[:-3] if name.lower().endswith(".gz") else name).stem
    structure = resolve_atoms(
        parsed.atoms,
        name=name,
        source=file.path,
        form=parsed.format,
        altloc=altloc,
        report=report,
        predicted=parsed.predicted,
    )
    return structure if chains is None else select_chains(structure, chains)


def resolve_atoms(
    atoms: AtomArray,
    *,
    name: str,
    source: str,
    form: str,
    altloc: str = "occupancy",
    report: LossReport,
    predicted: bool = False,
) -> Structure:
    """Drop unusable coordinates and all but one conformation per residue.

    ``atoms``: with ``occupancy`` and ``altloc_id`` ("" if the atom has one location); ``altloc_id`` is deleted.
    """
    is_small = np.abs(atoms.coord) <= MAX_COORDINATE  # False for NaN
    has_altlocs = (atoms.altloc_id != "").any()
    if is_small.all() and not has_altlocs:  # most files
        atoms.del_annotation("altloc_id")
        return Structure(name, atoms, source, form, report, predicted)
    usable = is_small.all(axis=1)
    if not usable.any():
        raise EmptyStructureError(f"{source or name}: none of {len(atoms)} atoms has usable coordinates")
    keep = usable.copy()
    if has_altlocs:
        start = residue_starts(atoms)
        residue = group_residues(atoms.chain_id[start], atoms.res_id[start], atoms.ins_code[start])
        residue = separate_copies(residue, start, atoms.atom_name, atoms.altloc_id, atoms.coord)
        of_atoms = np.repeat(residue, np.diff(start, append=len(atoms)))
        ids = name_blank_conformations(atoms.altloc_id, atoms.atom_name, atoms.res_name, of_atoms)
        keep &= altloc_mask(ids, atoms.occupancy, of_atoms, altloc=altloc, required=atoms.atom_name == "CA")
    atoms.del_annotation("altloc_id")
    left_out = LossReport(invalid_atoms=int((~usable).sum()), altloc_atoms=int((usable & ~keep).sum()))
    if not keep.all():
        atoms = atoms[keep]
    return Structure(name, atoms, source, form, report.merge(left_out), predicted)
