"""Build a biological assembly from the atoms of a model and the operations of an mmCIF or PDB file.

Not biotite for REMARK 350: it needs an empty line before the first record, and finds no assembly of "BIOMOLECULE: 1, 2"
(biotite 1.6.0, 2026-11-26).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from biotite.structure import AtomArray, concatenate, repeat
from biotite.structure.io import pdbx

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_column import CategoryTable, ColumnValues

__all__ = ["ChainCopies", "build_assembly", "copy_chains", "read_remark_350"]

_COLUMNS = {
    "auth_asym_id": "chain_id",
    "auth_seq_id": "res_id",
    "auth_comp_id": "res_name",
    "auth_atom_id": "atom_name",
    "pdbx_PDB_ins_code": "ins_code",
    "label_alt_id": "altloc_id",
    "type_symbol": "element",
    "occupancy": "occupancy",
    "B_iso_or_equiv": "b_factor",
}

_LISTS = {"asym_id_list", "oper_expression"}  # texts of any number of lines; white space is no part of an id


def build_assembly(
    atoms: AtomArray, label_asym_id: np.ndarray, operators: Mapping[str, CategoryTable], name: str
) -> AtomArray:
    """Apply the operations of an assembly to the chains that it lists.

    Parameters
    ----------
    atoms : AtomArray
        One model, with annotations ``b_factor``, ``occupancy`` and ``altloc_id``.
    label_asym_id : ndarray
        ``(A,)`` str, chain id of the database.
    operators : mapping of str to CategoryTable
        Categories ``pdbx_struct_assembly_gen`` and ``pdbx_struct_oper_list``.
    name : str
        Name of the assembly.

    Returns
    -------
    AtomArray
        Copy by copy, with annotation ``atom_id``, equal for the copies of an atom.

    Raises
    ------
    InvalidFileError
        A category or column is missing.
    """
    site = {column: atoms.get_annotation(annotation) for column, annotation in _COLUMNS.items()}
    site["group_PDB"] = np.where(atoms.hetero, "HETATM", "ATOM")
    site["label_asym_id"] = label_asym_id
    site["id"] = np.arange(len(atoms))
    site["pdbx_PDB_model_num"] = np.ones(len(atoms), np.int32)
    for axis, column in enumerate(("Cartn_x", "Cartn_y", "Cartn_z")):
        site[column] = np.ascontiguousarray(atoms.coord[:, axis])
    categories = {"atom_site": pdbx.BinaryCIFCategory(site)}
    for category, table in operators.items():
        columns = {item: _array(table.column(item)) for item in table.names}
        for item in _LISTS & set(columns):
            columns[item] = np.array([re.sub(r"\s", "", text) for text in columns[item].astype(str).tolist()])
        categories[category] = pdbx.BinaryCIFCategory(columns)
    assembly = pdbx.get_assembly(
        pdbx.BinaryCIFBlock(categories), name, model=1, altloc="all", use_author_fields=True,
        extra_fields=["atom_id", "b_factor", "occupancy"],
    )  # fmt: skip
    assembly.box = atoms.box
    return assembly


def _array(column: ColumnValues) -> np.ndarray:
    """Return numbers of BinaryCIF as they are, since a float32 written as text would be read as another float64."""
    is_number = not column.is_text and column.mask is None
    return column.values if is_number else column.texts()


@dataclass(frozen=True)
class ChainCopies:
    """Chains of a PDB file and the operations that make their copies.

    Parameters
    ----------
    chains : list of str
    rows : list of list of float
        Three rows of an operation after each other, each with three elements of the rotation and one of the shift, Å.
    """

    chains: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)


def read_remark_350(text: str, where: str) -> dict[str, list[ChainCopies]]:
    """Parse the biological assemblies of a PDB file, by name.

    A record "BIOMOLECULE: 1, 2" begins two assemblies with the same operations. The chain NULL is the blank one.

    Raises
    ------
    StructureFileError
        A record cannot be read.
    """
    assemblies: dict[str, list[ChainCopies]] = {}
    current: list[ChainCopies] = []
    for line in re.findall(r"^REMARK 350 (.*)", text, re.MULTILINE):
        begin, _, rest = line.strip().partition(":")
        words = rest.replace(",", " ").split()
        if begin == "BIOMOLECULE":
            current = []
            for name in words:
                assemblies.setdefault(name, []).append(current)
        elif begin in ("APPLY THE FOLLOWING TO CHAINS", "AND CHAINS"):
            if begin != "AND CHAINS" or not current:
                current.append(ChainCopies())
            current[-1].chains.extend("" if word == "NULL" else word for word in words)
        elif begin.startswith("BIOMT"):
            if not current:
                raise StructureFileError(f"{where}: REMARK 350 has BIOMT records without chains that they apply to.")
            current[-1].rows.append(_biomt_row(line, where))
    return {name: [copies for part in parts for copies in part] for name, parts in assemblies.items()}


def _biomt_row(line: str, where: str) -> list[float]:
    """Return the four numbers of a record BIOMT1, BIOMT2 or BIOMT3."""
    words = line.split()[2:]
    try:
        row = [float(word) for word in words]
    except ValueError:
        row = []
    if len(row) != len(words) or len(row) != 4:
        raise StructureFileError(f"{where}: REMARK 350 {line.strip()!r} does not have four numbers.")
    return row


def copy_chains(atoms: AtomArray, parts: list[ChainCopies], where: str) -> AtomArray:
    """Apply operations of REMARK 350 to the chains that they are for, part by part and copy by copy.

    Raises
    ------
    StructureFileError
        The records of an operation are not complete.
    """
    copies = []
    for part in parts:
        if len(part.rows) == 0 or len(part.rows) % 3:
            raise StructureFileError(
                f"{where}: REMARK 350 has {len(part.rows)} BIOMT records for chains {', '.join(part.chains)}. "
                "Required: three for each operation."
            )
        chosen = atoms[np.isin(atoms.chain_id, part.chains)]
        operations = np.array(part.rows).reshape(-1, 3, 4)
        coord = [chosen.coord @ operation[:, :3].T + operation[:, 3] for operation in operations]
        copies.append(repeat(chosen, np.array(coord)))
    return concatenate(copies)
