"""Write atoms as mmCIF with values in the B factors; what an mmCIF or BinaryCIF file has besides stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgpack
import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import StructureFileError
from protgraph.structure.io.atom_site import AtomSite
from protgraph.structure.io.bcif import BinaryBlock
from protgraph.structure.io.cif_column import CategoryTable, DataBlock
from protgraph.structure.io.cif_parse import ParsedBlock, TextTable, parse_cif, unify_lines
from protgraph.structure.io.cif_text import Columns, category_text, decimal_texts, quote_all
from protgraph.structure.io.polymers import POLYMER_CATEGORIES, Polymers, same_columns
from protgraph.structure.io.sniff import FileContent
from protgraph.structure.io.unit_cell import edges_and_angles
from protgraph.structure.residues.alphabet import residue_kind
from protgraph.structure.residues.structure import residue_starts

__all__ = ["DETAILS", "atoms_as_cif", "edited_cif"]

DETAILS = "protgraph_b_factor"
"""Category that describes written B factors."""

_SITE, _ANISOTROPIC, _SEQUENCE, _SCHEME = (
    "atom_site",
    "atom_site_anisotrop",
    "entity_poly_seq",
    "pdbx_poly_seq_scheme",
)
#: Categories that refer to label_asym_id, label_entity_id or label_seq_id: with one of them, these identifiers stay.
_REFERRING = (*POLYMER_CATEGORIES, "pdbx_struct_assembly_gen", "struct_conf", "struct_conn", "struct_sheet_range")
_LABELS = ("label_asym_id", "label_entity_id", "label_seq_id")
_MOST_DECIMALS = 6

_OWN_DETAILS = re.compile(
    rb"^loop_\n_%s\.ordinal\n_%s\.details\n(?:\d+ .*\n)+#\n" % ((DETAILS.encode(),) * 2), re.MULTILINE
)

#: Column of atom_site → its values for atoms. All readers find these columns in a written file.
_OF_ATOMS: dict[str, Callable[[AtomArray], np.ndarray]] = {
    "group_PDB": lambda atoms: np.where(atoms.hetero, b"HETATM", b"ATOM"),
    "id": lambda atoms: decimal_texts(np.arange(1, len(atoms) + 1), 0),
    "type_symbol": lambda atoms: quote_all(symbol or None for symbol in atoms.element.tolist()),
    "label_atom_id": lambda atoms: quote_all(atoms.atom_name.tolist()),
    "label_alt_id": lambda atoms: quote_all(altloc or None for altloc in atoms.altloc_id.tolist()),
    "label_comp_id": lambda atoms: quote_all(atoms.res_name.tolist()),
    "pdbx_PDB_ins_code": lambda atoms: quote_all(code or None for code in atoms.ins_code.tolist()),
    "Cartn_x": lambda atoms: _decimals(atoms.coord[:, 0], 3),
    "Cartn_y": lambda atoms: _decimals(atoms.coord[:, 1], 3),
    "Cartn_z": lambda atoms: _decimals(atoms.coord[:, 2], 3),
    "occupancy": lambda atoms: _decimals(atoms.occupancy, 2),
    "auth_seq_id": lambda atoms: decimal_texts(atoms.res_id, 0),
    "auth_comp_id": lambda atoms: quote_all(atoms.res_name.tolist()),
    "auth_asym_id": lambda atoms: quote_all(chain or None for chain in atoms.chain_id.tolist()),
    "auth_atom_id": lambda atoms: quote_all(atoms.atom_name.tolist()),
    "pdbx_PDB_model_num": lambda atoms: np.full(len(atoms), b"1"),
}
#: Columns in which readers require a value in each row.
_COMPLETE = ("type_symbol", "label_atom_id", "label_comp_id", "occupancy", "auth_seq_id", "auth_comp_id",
             "auth_asym_id", "auth_atom_id", "pdbx_PDB_model_num")  # fmt: skip


def atoms_as_cif(
    atoms: AtomArray, b_factor: np.ndarray, details: Sequence[str], *, name: str, polymers: Polymers
) -> bytes:
    """Return atoms as an mmCIF file.

    ``b_factor``: ``(A,)`` float, Å². ``name``: name of the data block; characters that it cannot have become "_".
    """
    name = re.sub(r"[^\x21-\x7e]", "_", name) or "structure"
    site = {column: values(atoms) for column, values in _OF_ATOMS.items()}
    site |= _labels(polymers)
    site["B_iso_or_equiv"] = _b_factors(b_factor)
    categories: dict[str, Columns] = {"entry": {"id": quote_all([name])}}
    if atoms.box is not None:
        categories["cell"] = _cell(atoms.box)
    categories |= polymers.categories
    categories[_SITE] = site
    return f"data_{name}\n#\n".encode() + _details(details) + _categories(categories)


def edited_cif(
    file: FileContent,
    block: DataBlock,
    model: int,
    atoms: AtomArray,
    b_factor: np.ndarray,
    details: Sequence[str],
    *,
    inferred_elements: bool,
    polymers: Callable[[], Polymers],
) -> bytes:
    """Return an mmCIF or BinaryCIF file as mmCIF, with one model and other B factors.

    Columns that readers require and the file lacks are added, and so are values of ``auth_*`` columns, occupancies and
    elements that it lacks. A file without ``label_*`` identifiers, or with other values of ``label_seq_id`` than
    positions in a polymer, gets new ones and the categories of its polymers, unless another category refers to the
    identifiers. ``pdbx_poly_seq_scheme``, which mkdssp requires, is added to any file without it.

    ``model``: model to keep, by its place in the file, from 1.
    """
    source = _read_source(file, block, model)
    rows = AtomSite(source.site, None, file.path).rows(model)
    try:
        site = {name: _written(source.site, name, rows) for name in source.site.names}
    except (LookupError, TypeError, ValueError) as e:
        raise StructureFileError(f"{file.path}: atom_site cannot be read ({e})") from e
    count = len(next(iter(site.values())))
    if count != len(b_factor):
        raise StructureFileError(f"{file.path}: {count} atoms in model {model}, but {len(b_factor)} were read.")
    # columns that readers require, and their values
    for name, values in _OF_ATOMS.items():
        if name not in site or (name == "type_symbol" and inferred_elements):
            site[name] = values(atoms)
        elif name in _COMPLETE:
            is_null = _is_null(site[name])
            if is_null.any():
                site[name] = np.where(is_null, values(atoms), site[name])

    labels = _complete_labels(site, source, atoms, polymers)
    site |= labels.columns
    site["B_iso_or_equiv"] = _b_factors(b_factor)
    text = source.before + _details(details) + _categories({**labels.categories, _SITE: site})
    return text + source.after


@dataclass(frozen=True, eq=False)
class _Source:
    """A file apart from its atoms.

    ``site``: ``atom_site`` of the first block that has one. ``before``: the blocks before this one, and its name and
    other categories. ``after``: the blocks after it.
    """

    site: CategoryTable
    before: bytes
    after: bytes = b""

    def has(self, category: str) -> bool:
        """Return True if a category is before the atoms."""
        return f"_{category.lower()}.".encode() in self.before.lower()


def _read_source(file: FileContent, block: DataBlock, model: int) -> _Source:
    """Return a file apart from its atoms; text is parsed again only if a part of it cannot stay."""
    if file.format == "bcif":
        unpacked = msgpack.unpackb(file.data, raw=False, strict_map_key=False)
        blocks = [BinaryBlock(columns) for columns in unpacked["dataBlocks"]]
        return _rewritten(blocks, file.path, model)
    text = block.text_without(_SITE) if isinstance(block, ParsedBlock) else None
    site = block.get(_SITE)
    if site is not None and text is not None and text.isascii():
        source = _Source(site, _OWN_DETAILS.sub(b"", text))
        has_other_models = AtomSite(source.site, None, file.path).models > 1
        if not source.has(DETAILS) and not (has_other_models and source.has(_ANISOTROPIC)):
            return source
    return _rewritten(parse_cif(unify_lines(file.data), file.path), file.path, model)


def _rewritten(blocks: Sequence[BinaryBlock | ParsedBlock], path: str, model: int) -> _Source:
    """Write all blocks as text, without the atoms of the first one that has some."""
    texts: list[bytes] = []
    number = next(i for i, block in enumerate(blocks) if block.get(_SITE) is not None)
    names = [block.name for block in blocks]
    for i, block in enumerate(blocks):
        if block.name in names[:i]:
            raise StructureFileError(f"{path}: data block {block.name!r} occurs twice. Names must be unique.")
        tables: dict[str, CategoryTable] = dict(block.tables)
        if i == number:
            site = tables.pop(_SITE)
            tables.pop(DETAILS, None)
        try:
            categories = _written_categories(tables)
            if i == number and _ANISOTROPIC in categories:
                categories[_ANISOTROPIC] = _of_model(categories[_ANISOTROPIC], site, path, model)
        except (LookupError, TypeError, ValueError) as e:
            raise StructureFileError(f"{path}: data block {block.name!r} cannot be read ({e})") from e
        texts.append(f"data_{block.name}\n#\n".encode() + _categories(categories))
    return _Source(site, b"".join(texts[: number + 1]), b"".join(texts[number + 1 :]))


def _written_categories(tables: Mapping[str, CategoryTable]) -> dict[str, Columns]:
    """Return the columns of each category that has rows, as text."""
    categories: dict[str, Columns] = {}
    for category, table in tables.items():
        if table.size:
            categories[category] = {name: _written(table, name) for name in table.names}
    return categories


def _of_model(anisotropic: Columns, site: CategoryTable, path: str, model: int) -> Columns:
    """Return the rows of the atoms of a model."""
    if "id" not in anisotropic or "id" not in site.names:
        return anisotropic
    rows = AtomSite(site, None, path).rows(model)
    ids = {value.strip() for value in _written(site, "id", rows).tolist()}
    is_of_model = np.array([value.strip() in ids for value in anisotropic["id"].tolist()])
    return {name: values[is_of_model] for name, values in anisotropic.items()}


def _categories(categories: Mapping[str, Columns]) -> bytes:
    texts = []
    for name, columns in categories.items():
        first = next(iter(columns.values()))
        if len(first):
            texts.append(category_text(name, columns))
    return b"".join(texts)


def _details(details: Sequence[str]) -> bytes:
    numbers = [str(i) for i in range(1, len(details) + 1)]
    return category_text(DETAILS, {"ordinal": quote_all(numbers), "details": quote_all(details)})


# --- values as they are written -----------------------------------------------------------------------------------


def _written(table: CategoryTable, name: str, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
    """Return values of a column as they are written, ``(rows,)`` bytes."""
    if isinstance(table, TextTable):
        return table.characters(name, rows)
    column = table.column(name, rows)
    if column.index is not None:
        texts = quote_all(column.values.tolist())[column.index]
    elif column.is_text:
        texts = quote_all(column.values.tolist())
    elif column.values.dtype.kind in "iu":
        texts = decimal_texts(column.values, 0)
    else:
        texts = _decimals(column.values, 1)
    if column.mask is not None:
        marks = np.array([b"", b".", b"?"])
        texts = np.where(column.mask == 0, texts, marks[column.mask])
    return texts


def _decimals(values: np.ndarray, least: int) -> np.ndarray:
    """Return numbers with as many decimals as are needed to read the same numbers, ``(rows,)`` bytes; "?" for NaN."""
    is_known = np.isfinite(values)
    known = np.where(is_known, values, 0)
    largest = np.abs(known).max(initial=0)
    for decimals in range(least, _MOST_DECIMALS + 1):
        factor = 10.0**decimals
        if largest * factor >= 2**53:
            continue
        rounded = np.rint(known.astype(np.float64) * factor) / factor
        if (rounded.astype(known.dtype) == known).all():
            return decimal_texts(values, decimals)
    return np.where(is_known, values.astype("S"), b"?")


def _b_factors(b_factor: np.ndarray) -> np.ndarray:
    values, index = np.unique(b_factor, return_inverse=True)
    texts = np.array([f"{value:.7g}".encode() for value in values.tolist()])
    return texts[index]


def _cell(box: np.ndarray) -> Columns:
    cell = edges_and_angles(box)
    values = {
        "length_a": cell.a,
        "length_b": cell.b,
        "length_c": cell.c,
        "angle_alpha": cell.alpha,
        "angle_beta": cell.beta,
        "angle_gamma": cell.gamma,
    }
    return {item: decimal_texts(np.array([value]), 3) for item, value in values.items()}


def _is_null(column: np.ndarray) -> np.ndarray:
    """Return True for the values "." and "?", ``(rows,)`` bool."""
    characters = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), -1)
    is_null = (characters[:, 0] == ord(".")) | (characters[:, 0] == ord("?"))
    if characters.shape[1] > 1:  # nothing may follow
        is_null &= characters[:, 1] <= ord(" ")
    return is_null


# --- identifiers of molecules -------------------------------------------------------------------------------------


def _labels(polymers: Polymers) -> dict[str, np.ndarray]:
    values = (polymers.asym, polymers.entity, polymers.sequence_id)
    return dict(zip(_LABELS, values, strict=True))


class _CompletedLabels(NamedTuple):
    """Columns of ``atom_site`` with new identifiers of molecules, and the categories that the file lacks."""

    columns: dict[str, np.ndarray]
    categories: Mapping[str, Columns]


def _complete_labels(
    site: Mapping[str, np.ndarray], source: _Source, atoms: AtomArray, find: Callable[[], Polymers]
) -> _CompletedLabels:
    """Complete the identifiers of molecules of ``atom_site``."""
    columns: dict[str, np.ndarray] = {}
    if not _has_labels(site, source, atoms):
        polymers = find()
        labels = _labels(polymers)
        if not any(source.has(category) for category in _REFERRING):
            return _CompletedLabels(labels, polymers.categories)

        # Other categories refer to the identifiers that the file has: only those that it lacks are new.
        columns = {name: labels[name] for name in _LABELS if name not in site}
        if "label_seq_id" in site and not _are_positions({**site, **columns}, atoms):
            columns["label_seq_id"] = polymers.sequence_id
    scheme: Columns = {}
    if not source.has(_SCHEME):
        scheme = _scheme({**site, **columns}, atoms)
    return _CompletedLabels(columns, {_SCHEME: scheme} if scheme else {})


def _has_labels(site: Mapping[str, np.ndarray], source: _Source, atoms: AtomArray) -> bool:
    """Return True if a file has usable identifiers of molecules."""
    if any(name not in site for name in _LABELS):
        return False
    return source.has(_SEQUENCE) or _are_positions(site, atoms)


def _residue_rows(site: Mapping[str, np.ndarray], atoms: AtomArray) -> list[tuple[bytes, ...]]:
    """Return a row for each run of atoms that has a position in a polymer: the columns ``names`` below."""
    start = residue_starts(atoms)
    has_position = ~_is_null(site["label_seq_id"])
    start = start[has_position[start]]
    names = (*_LABELS, "auth_seq_id", "pdbx_PDB_ins_code", "label_comp_id", "auth_asym_id")
    columns = [site[name][start].tolist() for name in names]
    return list(zip(*columns, strict=True))


def _are_positions(site: Mapping[str, np.ndarray], atoms: AtomArray) -> bool:
    """Return True if label_seq_id are positions: from 1, different for the residues of a molecule, and not of water."""
    rows = set(_residue_rows(site, atoms))
    if not rows:
        return False
    asym, _, position, number, code, name, _ = zip(*rows, strict=True)
    if not all(text.strip().isdigit() and int(text) > 0 for text in set(position)):
        return False
    places = set(zip(asym, position, strict=True))
    residues = set(zip(asym, position, number, code, strict=True))
    if len(places) < len(residues):  # two residues at one place
        return False
    return all(residue_kind(text.decode().strip()) != "water" for text in set(name))


def _scheme(site: Mapping[str, np.ndarray], atoms: AtomArray) -> Columns:
    """Return ``pdbx_poly_seq_scheme`` of the residues that have atoms."""
    rows = dict.fromkeys(_residue_rows(site, atoms))  # each residue once
    if not rows:
        return {}
    names = ("asym_id", "entity_id", "seq_id", "auth_seq_num", "pdb_ins_code", "mon_id", "pdb_strand_id")
    columns = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        columns[name] = np.array(values)
    return {**columns, **same_columns(columns)}
