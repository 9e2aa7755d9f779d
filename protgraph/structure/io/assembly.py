"""Build a biological assembly from the atoms of a model and the operations of an mmCIF file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io import pdbx

from protgraph.structure.io.cif_column import CategoryTable, ColumnValues

__all__ = ["build_assembly"]

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
        columns = {item: table.column(item) for item in table.names}
        categories[category] = pdbx.BinaryCIFCategory({item: _array(column) for item, column in columns.items()})
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
