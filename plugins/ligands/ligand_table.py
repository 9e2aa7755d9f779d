"""Tables of ligand atoms, and structures that have the atoms of their ligand."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io import pdbx
from scipy.spatial import cKDTree

from protgraph.errors import LabelError, SelectionError
from protgraph.file_io import atomic_write
from protgraph.structure import Structure
from protgraph.structure.residues import ELEMENTS

__all__ = ["FARTHEST", "LIGAND_CHAIN", "LigandAtoms", "join_ligand", "read_ligand_table", "write_complex"]

#: Author chain id and residue name of a joined ligand. UNL is "unknown ligand", which has no bonds by name.
LIGAND_CHAIN, RES_NAME = "LIG", "UNL"
#: Å from the nearest atom of the protein; a ligand that is farther away is in another frame.
FARTHEST = 6.0
COLUMNS = ("file", "element", "x", "y", "z")
_FILE_COLUMNS = ("file", "pdb", "id")
_HYDROGENS = ("H", "D", "T")


@dataclass(frozen=True, eq=False)
class LigandAtoms:
    """Heavy atoms of the ligand of one structure.

    Parameters
    ----------
    element : ndarray
        ``(M,)`` str, upper case.
    pos : ndarray
        ``(M, 3)`` float32, Å, in the frame of the structure.
    """

    element: np.ndarray
    pos: np.ndarray


def read_ligand_table(path: str | Path) -> dict[str, LigandAtoms]:
    """Read a table with one row per ligand atom.

    Parameters
    ----------
    path : str or Path
        Text with tabs (``.tsv``) or commas, optionally compressed with gzip; columns ``file`` (or ``pdb``, ``id``: the
        structure's file with or without suffixes), ``element``, ``x``, ``y`` and ``z`` in Å. Others are ignored, and so
        are hydrogens.

    Returns
    -------
    dict of str to LigandAtoms
        Name of the structure, as in the table, to the atoms of its ligand, in the order of the rows.

    Raises
    ------
    LabelError
        A column is missing, an element does not exist, or a coordinate is not a finite number.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    delimiter = "\t" if ".tsv" in Path(path).name else ","
    elements: dict[str, list[str]] = {}
    positions: dict[str, list[list[float]]] = {}
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter)
        file_column = _file_column(path, reader.fieldnames or ())
        for number, row in enumerate(reader, 2):
            element = (row["element"] or "").strip().upper()
            if element in _HYDROGENS:
                continue
            if element not in ELEMENTS:
                raise LabelError(f"{path}, line {number}: element {row['element']!r}. Allowed: a symbol, e.g. C or CL.")
            name = row[file_column]
            elements.setdefault(name, []).append(element)
            positions.setdefault(name, []).append([_coordinate(path, number, row, axis) for axis in "xyz"])
    ligands = {}
    for name, symbols in elements.items():
        ligands[name] = LigandAtoms(np.array(symbols), np.array(positions[name], np.float32))
    return ligands


def _file_column(path: str | Path, names: Sequence[str]) -> str:
    """Return the name of the column with the files; raise if it or another column is missing."""
    file_columns = [name for name in _FILE_COLUMNS if name in names]
    missing = [name for name in COLUMNS[1:] if name not in names]
    if not file_columns:
        missing = [COLUMNS[0], *missing]
    if missing:
        raise LabelError(
            f"{path}: no column {', '.join(missing)}. Required: {', '.join(COLUMNS)}, with tabs in a .tsv file, else "
            "with commas."
        )
    return file_columns[0]


def _coordinate(path: str | Path, number: int, row: dict[str, str], axis: str) -> float:
    try:
        value = float(row[axis])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise LabelError(f"{path}, line {number}: {axis} = {row[axis]!r}. Allowed: a finite number, in Å.")
    return value


def join_ligand(structure: Structure, ligand: LigandAtoms) -> Structure:
    """Return a structure with the atoms of its ligand, as one molecule ``UNL`` of the chain ``LIG``.

    Atoms are named by element and number, e.g. C1, C2, O1.

    Raises
    ------
    SelectionError
        The structure has a chain ``LIG``, or the ligand is more than 6 Å from all of its atoms.
    """
    atoms = structure.atoms
    name = structure.source or structure.name
    if (atoms.chain_id == LIGAND_CHAIN).any():
        raise SelectionError(
            f"{name}: chain {LIGAND_CHAIN!r} exists, so it has a ligand already. Use the file as it is."
        )
    distance, _ = cKDTree(atoms.coord).query(ligand.pos)
    if distance.min() > FARTHEST:
        raise SelectionError(
            f"{name}: the ligand is {distance.min():.1f} Å from the nearest atom. Allowed: up to {FARTHEST:g} Å. Give "
            "coordinates in the frame of the structure."
        )
    added = AtomArray(len(ligand.element))
    for annotation in atoms.get_annotation_categories():
        if annotation not in added.get_annotation_categories():
            added.add_annotation(annotation, atoms.get_annotation(annotation).dtype)
    added.coord = ligand.pos
    added.chain_id[:] = LIGAND_CHAIN
    added.res_name[:] = RES_NAME
    added.res_id[:] = 1
    added.hetero[:] = True
    added.element = ligand.element
    added.atom_name = _atom_names(ligand.element)
    if "occupancy" in added.get_annotation_categories():
        added.occupancy[:] = 1.0
    return replace(structure, atoms=_wide_chains(atoms) + added)


def _wide_chains(atoms: AtomArray) -> AtomArray:
    """Return atoms whose chain ids may have as many characters as that of the ligand."""
    widened = atoms.copy()
    width = max(atoms.chain_id.dtype.itemsize // 4, len(LIGAND_CHAIN))
    widened.chain_id = atoms.chain_id.astype(f"U{width}")
    return widened


def _atom_names(element: np.ndarray) -> np.ndarray:
    count: dict[str, int] = {}
    names = []
    for symbol in element.tolist():
        count[symbol] = count.get(symbol, 0) + 1
        names.append(f"{symbol}{count[symbol]}")
    return np.array(names)


def write_complex(structure: Structure, path: str | Path) -> None:
    """Write a structure as BinaryCIF."""
    file = pdbx.BinaryCIFFile()
    pdbx.set_structure(file, structure.atoms, data_block=structure.name)
    with atomic_write(path) as temporary, open(temporary, "wb") as content:
        file.write(content)
