"""What proteins a file holds, be it a structure or sequences, each to be read by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from protgraph.errors import SelectionError
from protgraph.structure.io.fasta import FASTA_SUFFIXES, is_fasta, read_fasta
from protgraph.structure.io.load import load_structure
from protgraph.structure.residues.clean import clean
from protgraph.structure.residues.residues import Residues

__all__ = ["SUFFIXES", "ProteinSource", "entries", "is_protein_file"]

SUFFIXES = (".pdb", ".ent", ".cif", ".mmcif", ".bcif", *FASTA_SUFFIXES)
"""Suffixes by which files of proteins are found in a folder."""


@dataclass(frozen=True)
class ProteinSource:
    """One protein of a file.

    Parameters
    ----------
    label : str
        What tells it from others: the path; of a FASTA record, the path, "#" and the record's name.
    read : callable
        Gives its residues, or raises.
    """

    label: str
    read: Callable[[], Residues]


def entries(
    path: str | os.PathLike[str],
    *,
    chains: Sequence[str] | None = None,
    model: int = 1,
    altloc: str = "occupancy",
    assembly: str | None = None,
    ligands: bool = False,
    nucleic: bool = False,
) -> list[ProteinSource]:
    """The proteins of a file: all of a structure is one, and every record of a FASTA file.

    Parameters
    ----------
    path : str or PathLike
        PDB, mmCIF, BinaryCIF or FASTA, gzipped or not, known by its content.
    chains : sequence of str, optional
        Only these chains; of a FASTA file, only the records of these chains.
    model : int
        Which model of a structure file with several.
    altloc : str
        Which alternate location of a residue; see :func:`protgraph.structure.load_structure`.
    assembly : str, optional
        Which biological assembly of a structure file; None takes what was deposited.
    ligands, nucleic : bool
        Whether ligands and nucleotides of a structure file are kept; see :func:`protgraph.structure.residues.clean`.

    Raises
    ------
    StructureFileError
        It looks like FASTA and cannot be read as such. Errors of a structure come when it is read.
    SelectionError
        No record of a FASTA file is of these chains.
    """
    if not is_fasta(path):
        return [ProteinSource(str(path), partial(_structure, path, chains, model, altloc, assembly, ligands, nucleic))]
    records = [record for record in read_fasta(path) if chains is None or record.chain in chains]
    if not records:
        raise SelectionError(f"{path}: no record is of chain {' or '.join(map(repr, chains or ()))}")
    return [ProteinSource(f"{path}#{record.name}", record.residues) for record in records]


def is_protein_file(path: str | os.PathLike[str]) -> bool:
    """Whether a name has the suffix of a structure or FASTA file, maybe with .gz behind it."""
    return os.fspath(path).lower().removesuffix(".gz").endswith(SUFFIXES)


def _structure(
    path: str | os.PathLike[str],
    chains: Sequence[str] | None,
    model: int,
    altloc: str,
    assembly: str | None,
    ligands: bool,
    nucleic: bool,
) -> Residues:
    structure = load_structure(path, model=model, altloc=altloc, assembly=assembly)
    return clean(structure, chains=chains, ligands=ligands, nucleic=nucleic)
