"""Read a model of a PDB file: every legal record, and records that old and simulation programs write.

The records are parsed by columns; those with other than standard numbers are repaired one by one, with a note.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from biotite.structure import AtomArray, BondList

from protgraph.structure.io.elements import (
    UNKNOWN_ELEMENT,
    contradicts_residue,
    element_of_name,
    element_symbols,
    infer_element,
    is_dummy_symbol,
)
from protgraph.structure.io.pdb_lines import PDBText, parse_numbers, parse_texts
from protgraph.structure.io.repair import join_residue_numbers, read_column_21, repair_numbers, shift_long_serials
from protgraph.structure.io.unit_cell import unit_cell_vectors
from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES, THREE_LETTER
from protgraph.structure.residues.chain_breaks import CA_BOND
from protgraph.structure.residues.structure import MOLECULE
from protgraph.structure.vectors import length

__all__ = ["PDBModel", "read_model"]

# Columns of atom records, from 0 (wwPDB file format 3.3).
# Text → first column, the one after the last, and length of its strings in biotite.
_TEXTS = {
    "chain_id": (21, 22, 4),
    "ins_code": (26, 27, 1),
    "res_name": (17, 20, 5),
    "atom_name": (12, 16, 6),
    "altloc_id": (16, 17, 1),
}
_SERIAL = slice(6, 11)
_NAME, _SEGMENT, _LINE_NUMBER, _ELEMENT, _CHAIN = slice(12, 16), slice(72, 76), slice(76, 80), slice(76, 78), 21
_TYPE = slice(77, 79)  # PDBQT
_CELL = ((6, 15), (15, 24), (24, 33), (33, 40), (40, 47), (47, 54))  # CRYST1: a, b, c in Å, α, β, γ in degrees
_BLANK = ord(" ")
_COVALENT = 2.0  # longest bond of backbone atoms, Å


@dataclass(frozen=True)
class PDBModel:
    """One model of a PDB file.

    ``atoms``: with ``occupancy``, ``b_factor`` and ``altloc_id``, and all alternate locations; elements in upper case.
    ``inferred_elements``: atoms whose element is inferred from their name. ``notes``: what was repaired or interpreted.
    """

    atoms: AtomArray
    inferred_elements: int
    notes: tuple[str, ...]


def read_model(text: PDBText, model: int, *, where: str = "PDB text") -> PDBModel:
    """Read one model.

    ``model``: its place in the file, from 1.
    """
    table, line = text.records(model)
    notes: list[str] = []
    values, valid = parse_numbers(table)
    if not valid[:3].all():
        notes += shift_long_serials(table, np.flatnonzero(~valid[:3].all(axis=0)))
        values, valid = parse_numbers(table)
    notes += repair_numbers(table, values, valid, line, where)
    notes += join_residue_numbers(table, values)
    atoms = AtomArray(len(table))
    atoms.coord = np.ascontiguousarray(values[:3].T.astype(np.float32))
    for name, (a, b, width) in _TEXTS.items():
        atoms.set_annotation(name, parse_texts(table[:, a:b], width))
    atoms.set_annotation("hetero", table[:, 0] | 0x20 == ord("h"))
    atoms.set_annotation("res_id", values[5].astype(atoms.res_id.dtype))
    atoms.set_annotation("occupancy", values[3].copy())
    atoms.set_annotation("b_factor", values[4].copy())
    molecule = _molecules(table, line, text.ter)
    if molecule is not None:
        atoms.set_annotation(MOLECULE, molecule)
    notes += _upper_names(atoms, table)
    notes += read_column_21(atoms, table)
    notes += _segment_chains(atoms, table)
    inferred = _set_elements(atoms, table)
    notes += _set_cell(atoms, text)
    atoms.bonds = _connections(atoms, table, text)
    if text.undeclared:
        numbers = ", ".join(map(str, text.undeclared))
        notes.append(f"atom records outside of MODEL and ENDMDL, or after END, read as models: {numbers}")
    return PDBModel(atoms, inferred, tuple(notes))


def _set_elements(atoms: AtomArray, table: np.ndarray) -> int:
    """Set elements from columns 77–78, or by atom names where these hold no possible one; return how many."""
    columns = table[:, _ELEMENT]
    # PDBQT has atom types in columns 78–79: symbols of two letters (Cl), or a symbol and a capital letter (OA, NA).
    has_type = (table[:, 78] >= ord("a")) & (table[:, 78] <= ord("z")) & (table[:, 76] == _BLANK)
    if has_type.any():
        columns = np.where(has_type[:, None], table[:, _TYPE], columns)
    symbols = element_symbols(columns)
    rows = np.flatnonzero((symbols.view(np.uint32)[::2] == 0) | contradicts_residue(symbols, atoms.res_name))
    if len(rows):
        res_name, atom_name = atoms.res_name[rows].tolist(), atoms.atom_name[rows].tolist()
        fields = np.ascontiguousarray(table[:, _NAME]).view("S4")[:, 0]
        # Names are at the first column if those of alpha carbons are; the columns then tell nothing about elements.
        if np.isin(atoms.res_name[fields == b"CA  "], AMINO_ACID_NAMES).any():
            symbols[rows] = list(map(element_of_name, res_name, atom_name))
        else:
            names = [name.ljust(4) for name in fields[rows].astype("U4").tolist()]
            symbols[rows] = list(map(infer_element, res_name, names))
        written = np.ascontiguousarray(table[rows, _ELEMENT]).view("S2")[:, 0].astype("U2")
        symbols[rows[is_dummy_symbol(written)]] = UNKNOWN_ELEMENT
    atoms.set_annotation("element", symbols)
    return len(rows)


def _molecules(table: np.ndarray, line: np.ndarray, ter: np.ndarray) -> np.ndarray | None:
    """Return a number for each part of the atom records between TER records, ``(A,)`` int64.

    None if no TER record is between an atom record and an ATOM record of the same chain id, as in files of the PDB.
    """
    after = np.searchsorted(line, ter)
    after = after[(after > 0) & (after < len(line))]
    if len(after) == 0:
        return None
    same_chain = (table[after, _CHAIN] == table[after - 1, _CHAIN]) & (table[after, 20] == table[after - 1, 20])
    after = after[same_chain & (table[after, 0] | 0x20 == ord("a"))]
    if len(after) == 0:
        return None
    begins = np.zeros(len(line), np.int64)
    begins[after] = 1
    return np.cumsum(begins)


def _connections(atoms: AtomArray, table: np.ndarray, text: PDBText) -> BondList | None:
    """Return the bonds of CONECT records between atoms that are of no amino acid; None if there are none."""
    if len(text.conect) == 0:
        return None
    serials = np.char.strip(np.ascontiguousarray(table[:, _SERIAL]).view("S5")[:, 0])
    is_usable = ~np.isin(atoms.res_name, AMINO_ACID_NAMES) & np.char.isdigit(serials)
    row = np.flatnonzero(is_usable)
    if len(row) == 0:
        return None
    number = serials[row].astype(np.int64)
    order = np.argsort(number, kind="stable")
    pairs = text.connections()  # (P, 2) serial numbers
    place = np.searchsorted(number[order], pairs).clip(max=len(row) - 1)
    found = order[place]
    is_found = (number[found] == pairs).all(axis=1)
    bonds = row[found[is_found]]
    return BondList(len(atoms), bonds) if len(bonds) else None


def _upper_names(atoms: AtomArray, table: np.ndarray) -> list[str]:
    """Convert lower-case names of amino acids and of their atoms to upper case; return a note if there are any."""
    names = table[:, 12:20]
    if names.max(initial=0) < ord("a"):
        return []
    upper = np.char.upper(atoms.res_name)
    rows = np.isin(upper, THREE_LETTER)
    rows &= (upper != atoms.res_name) | (np.char.upper(atoms.atom_name) != atoms.atom_name)
    if not rows.any():
        return []
    for name in ("res_name", "atom_name"):
        values = atoms.get_annotation(name)
        values[rows] = np.char.upper(values[rows])
    return [f"lower-case names of amino acids in {rows.sum()} atom records read as upper case"]


def _segment_chains(atoms: AtomArray, table: np.ndarray) -> list[str]:
    """Use segment ids as chain ids if all chain ids are blank and there are several segments; return a note then."""
    if not (table[:, _CHAIN] == _BLANK).all() or (table[:, _SEGMENT] == _BLANK).all():
        return []
    if (atoms.chain_id != "").any():  # in column 21
        return []
    numbered = (table[:, _LINE_NUMBER.stop - 1] >= ord("0")) & (table[:, _LINE_NUMBER.stop - 1] <= ord("9"))
    segments = parse_texts(table[:, _SEGMENT], 4)
    names = np.unique(segments)
    if numbered.all() or len(names) < 2:  # entry id and line number, in files before 1996
        return []
    if _differ_in_a_chain(atoms, segments):
        return ["no chain ids; columns 73–76 are not read as segment ids, since they differ between bonded residues"]
    atoms.chain_id = segments
    return [f"no chain ids: {len(names)} segment ids of columns 73–76 are read as chain ids"]


def _differ_in_a_chain(atoms: AtomArray, segments: np.ndarray) -> bool:
    """Return True if segments differ between bonded atoms of a backbone, e.g. charges in PDBQT files, or elements.

    In traces, CA atoms of successive numbers at most 4.3 Å apart are bonded.
    """
    rows = np.flatnonzero(np.isin(atoms.atom_name, ("N", "CA", "C")))
    left, right = rows[:-1], rows[1:]
    distance = length(atoms.coord[right].astype(np.float64) - atoms.coord[left])
    is_trace = (atoms.atom_name[left] == "CA") & (atoms.atom_name[right] == "CA")
    is_trace &= atoms.res_id[right] - atoms.res_id[left] == 1
    bonded = distance <= np.where(is_trace, CA_BOND, _COVALENT)
    return bool((bonded & (segments[left] != segments[right])).any())


def _set_cell(atoms: AtomArray, text: PDBText) -> list[str]:
    """Set the unit cell of CRYST1; return a note if that record has none."""
    if text.cell is None:
        return []
    try:
        a, b, c, alpha, beta, gamma = (float(text.cell[slice(*columns)]) for columns in _CELL)
    except ValueError:
        return ["the CRYST1 record cannot be read; there is no unit cell"]
    atoms.box = unit_cell_vectors((a, b, c), (alpha, beta, gamma))
    return ["the unit cell of the CRYST1 record has no volume; there is no unit cell"] if atoms.box is None else []
