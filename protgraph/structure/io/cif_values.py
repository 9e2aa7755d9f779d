"""Write values per residue into the B factors of an mmCIF file; other categories and columns stay as they are."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io import pdbx

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_parse import TokenTable, parse_cif, unify_lines
from protgraph.structure.io.sniff import FileContent

__all__ = ["DETAILS", "cif_of_atoms", "cif_of_file", "set_b_factors"]

DETAILS = "protgraph_b_factor"
"""Category that describes written B factors."""


def cif_of_file(file: FileContent) -> pdbx.CIFFile:
    """Return the content of an mmCIF or BinaryCIF file as mmCIF."""
    text = pdbx.CIFFile()
    if file.format == "bcif":
        for name, block in pdbx.BinaryCIFFile.read(io.BytesIO(file.data)).items():
            text[name] = pdbx.CIFBlock({key: _category(category) for key, category in block.items()})
        return text
    for block in parse_cif(unify_lines(file.data), file.path):
        if block.name in text:
            raise StructureFileError(f"{file.path}: data block {block.name!r} occurs twice. Names must be unique.")
        text[block.name] = pdbx.CIFBlock({key: _text_category(table) for key, table in block.tables.items()})
    return text


def _category(binary: pdbx.BinaryCIFCategory) -> pdbx.CIFCategory:
    columns = {}
    for name, column in binary.items():
        mask = None if column.mask is None else pdbx.CIFData(column.mask.array, np.uint8)
        columns[name] = pdbx.CIFColumn(pdbx.CIFData(column.data.array.astype(str), str), mask)
    return pdbx.CIFCategory(columns)


def _text_category(table: TokenTable) -> pdbx.CIFCategory:
    columns = {}
    for name in table.names:
        column = table.column(name)
        mask = None if column.mask is None else pdbx.CIFData(column.mask, np.uint8)
        columns[name] = pdbx.CIFColumn(pdbx.CIFData(column.texts(), str), mask)
    return pdbx.CIFCategory(columns)


def cif_of_atoms(atoms: AtomArray, name: str) -> pdbx.CIFFile:
    """Return atoms as mmCIF, with alternate locations from the annotation ``altloc_id``."""
    file = pdbx.CIFFile()
    pdbx.set_structure(file, atoms, data_block=name)
    file[name]["atom_site"]["label_alt_id"] = np.where(atoms.altloc_id == "", ".", atoms.altloc_id)
    return file


def set_b_factors(file: pdbx.CIFFile, model: int, b_factor: np.ndarray, details: Sequence[str], where: str) -> None:
    """Keep one model of the first block with atoms, and set its B factors and their description, in place.

    Parameters
    ----------
    file : CIFFile
    model : int
        Model to keep, by its place in the file, from 1.
    b_factor : ndarray
        ``(A,)`` float, one for each row of the model.
    details : sequence of str
        Description of the B factors.
    where : str
        Name of the file in errors.

    Raises
    ------
    StructureFileError
        The model has another number of atoms.
    """
    name = next(name for name in file if "atom_site" in file[name])
    block = file[name]
    site = block["atom_site"]
    keep = _rows_of_model(site, model)
    if keep.sum() != len(b_factor):
        raise StructureFileError(f"{where}: {keep.sum()} atoms in model {model}, but {len(b_factor)} were read.")
    if not keep.all():
        site = _select(site, keep)
        anisotropic = block.get("atom_site_anisotrop")
        if anisotropic is not None and "id" in anisotropic and "id" in site:
            kept = np.isin(anisotropic["id"].as_array(str), site["id"].as_array(str))
            block["atom_site_anisotrop"] = _select(anisotropic, kept)
    site["B_iso_or_equiv"] = [f"{value:.7g}" for value in b_factor.tolist()]
    block["atom_site"] = site
    numbers = [str(i) for i in range(1, len(details) + 1)]
    block[DETAILS] = pdbx.CIFCategory({"ordinal": numbers, "details": list(details)})


def _rows_of_model(site: pdbx.CIFCategory, model: int) -> np.ndarray:
    """Return True for the rows of a model by its place in the file, ``(rows,)`` bool."""
    if "pdbx_PDB_model_num" not in site:
        return np.ones(site.row_count, bool)
    number = site["pdbx_PDB_model_num"].as_array(str)
    first = np.sort(np.unique(number, return_index=True)[1])
    return number == number[first[model - 1]]


def _select(category: pdbx.CIFCategory, keep: np.ndarray) -> pdbx.CIFCategory:
    columns = {}
    for name, column in category.items():
        mask = None if column.mask is None else pdbx.CIFData(column.mask.array[keep], np.uint8)
        columns[name] = pdbx.CIFColumn(pdbx.CIFData(column.data.array[keep], str), mask)
    return pdbx.CIFCategory(columns)
