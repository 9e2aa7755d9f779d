"""Category ``atom_site`` of mmCIF and BinaryCIF as an ``AtomArray``, with all alternate locations.

Occupancies that are missing or masked are 1, the default of the mmCIF dictionary. A coordinate without a value is NaN.
Atoms, residues and chains have the names of the authors (``auth_*``), or where there are none those of ``label_*``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import product

import numpy as np
from biotite.structure import AtomArray, BondList

from protgraph.errors import EmptyStructureError, StructureFileError
from protgraph.structure.io.cif_column import CategoryTable, ColumnValues
from protgraph.structure.io.elements import complete_elements
from protgraph.structure.io.unit_cell import unit_cell_vectors
from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES
from protgraph.structure.residues.structure import MOLECULE

__all__ = ["AtomSite"]

# Annotation of an AtomArray → columns, by preference.
_IDENTIFIERS = {
    "chain_id": ("auth_asym_id", "label_asym_id"),
    "res_name": ("auth_comp_id", "label_comp_id"),
    "atom_name": ("auth_atom_id", "label_atom_id"),
}
_NUMBER = ("auth_seq_id", "label_seq_id")
_BLANK = {"ins_code": "pdbx_PDB_ins_code", "altloc_id": "label_alt_id"}  # "" where masked or missing
_POSITION = ("Cartn_x", "Cartn_y", "Cartn_z")
_BOND = ("comp_id", "atom_id_1", "atom_id_2")
_MODEL = "pdbx_PDB_model_num"
_CELL = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")  # Å, degrees

Rows = slice | np.ndarray


class AtomSite:
    """Atoms of a data block.

    ``site``: category ``atom_site``. ``cell``: category ``cell``. ``component_bonds``: category ``chem_comp_bond``, the
    bonds of molecules by their names; amino acids do not get them. ``where``: name of the file, for errors. ``notes``:
    columns and values that were read in place of missing ones by the last call of :meth:`atoms`. ``inferred_elements``:
    atoms of the last call whose element is inferred from their name.
    """

    def __init__(
        self,
        site: CategoryTable,
        cell: CategoryTable | None,
        where: str,
        *,
        component_bonds: CategoryTable | None = None,
    ) -> None:
        self._site, self._cell, self._where = site, cell, where
        self._component_bonds = component_bonds
        self.notes: list[str] = []
        self.inferred_elements = 0
        if site.size == 0:
            raise EmptyStructureError(f"{where}: the category atom_site has no rows")

    @cached_property
    def _models(self) -> list[Rows]:
        """Rows of each model, in order of appearance; the rows of a model need not be adjacent."""
        if _MODEL not in self._site.names:
            return [slice(None)]
        column = self._column(_MODEL, slice(None))
        if column.is_constant:
            return [slice(None)]
        number = column.integers(self._item(_MODEL))
        numbers, first, size = np.unique(number, return_index=True, return_counts=True)
        models: list[Rows] = []
        for i in np.argsort(first).tolist():
            rows = slice(int(first[i]), int(first[i] + size[i]))
            is_adjacent = (number[rows] == numbers[i]).all()
            models.append(rows if is_adjacent else np.flatnonzero(number == numbers[i]))
        return models

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self._models)

    def rows(self, model: int) -> Rows:
        """Return the rows of a model, from 1: a slice, or ``(A,)`` int64."""
        return self._models[model - 1]

    def atoms(self, model: int) -> AtomArray:
        """Return one model, from 1, with the unit cell; ``altloc_id`` is "" for atoms with one location."""
        rows = self.rows(model)
        self.notes = []
        numbers = self._numbers(rows)
        atoms = AtomArray(numbers["Cartn_x"].size)
        for axis, name in enumerate(_POSITION):
            atoms.coord[:, axis] = numbers[name]

        # chain, residue, atom and alternate location
        for annotation, names in _IDENTIFIERS.items():
            width = atoms.get_annotation(annotation).itemsize // 4  # characters of biotite's annotation
            read_texts = partial(ColumnValues.texts, width=width)
            atoms.set_annotation(annotation, self._preferred(names, rows, read_texts))
        number = self._preferred(_NUMBER, rows, lambda column: column.integers(self._item(_NUMBER[0])))
        atoms.set_annotation("res_id", number)
        for annotation, name in _BLANK.items():
            atoms.set_annotation(annotation, self._texts_or_blank(name, rows, len(atoms)))

        # molecule and element
        if "group_PDB" in self._site.names:
            is_hetero = self._column("group_PDB", rows).equals("HETATM")
            atoms.set_annotation("hetero", is_hetero)
        molecule = self._molecules(rows, atoms)
        if molecule is not None:
            atoms.set_annotation(MOLECULE, molecule)
        atoms.set_annotation("element", self._elements(rows, atoms))

        # B factor and occupancy
        b_factor = numbers["B_iso_or_equiv"]
        without_b = int(np.isnan(b_factor).sum())
        if without_b and "B_iso_or_equiv" in self._site.names:
            self.notes.append(f"{without_b} B factors without a value, read as 0")
        atoms.set_annotation("b_factor", b_factor)
        occupancy = numbers["occupancy"]
        has_none = np.isnan(occupancy)
        if has_none.any():
            occupancy[has_none] = 1.0
            self.notes.append(f"{int(has_none.sum())} occupancies without a value, read as 1")
        atoms.set_annotation("occupancy", occupancy)

        atoms.box = self._box()
        atoms.bonds = self._bonds(atoms)
        return atoms

    def label_asym_id(self, model: int) -> np.ndarray:
        """Return the chain id of the database for each atom of a model, which assemblies refer to, ``(A,)`` str."""
        name = "label_asym_id"
        if name not in self._site.names:
            raise StructureFileError(f"{self._where}: atom_site has no column {name}, which assemblies refer to.")
        return self._column(name, self.rows(model)).texts()

    def _molecules(self, rows: Rows, atoms: AtomArray) -> np.ndarray | None:
        """Return a number for each part of the ATOM rows of a chain with its own ``label_asym_id``, ``(A,)`` int64.

        None if no chain of the authors has several, as in files of the PDB.
        """
        if not {"label_asym_id", "auth_asym_id"} <= set(self._site.names):
            return None
        label = self._column("label_asym_id", rows).texts()
        is_other_label = label[1:] != label[:-1]
        is_same_chain = atoms.chain_id[1:] == atoms.chain_id[:-1]
        is_hetero = atoms.hetero[1:] | atoms.hetero[:-1]
        begins = is_other_label & is_same_chain & ~is_hetero
        if not begins.any():
            return None
        return np.cumsum(np.append(0, begins))

    def _texts_or_blank(self, name: str, rows: Rows, count: int) -> np.ndarray:
        """Return the texts of a column, ``(A,)`` str, "" where it is masked or missing."""
        if name not in self._site.names:
            return np.zeros(count, "U1")
        column = self._column(name, rows)
        if column.mask is not None and column.mask.all():
            return np.zeros(count, "U1")
        texts = column.texts(blank=True)
        return np.where(texts == " ", "", texts)  # ' ' in quotes

    def _item(self, name: str) -> str:
        return f"{self._where}: atom_site.{name}"

    def _column(self, name: str, rows: Rows) -> ColumnValues:
        return self._site.column(name, rows)

    def _elements(self, rows: Rows, atoms: AtomArray) -> np.ndarray:
        """Return element symbols, ``(A,)`` str, and count those that are inferred."""
        index = None
        if "type_symbol" not in self._site.names:
            symbols = np.zeros(len(atoms), "U1")
        else:
            column = self._column("type_symbol", rows)
            is_indexed = column.mask is None and column.index is not None
            symbols = column.values if is_indexed else column.texts()
            index = column.index if is_indexed else None
        elements, self.inferred_elements = complete_elements(symbols, atoms.res_name, atoms.atom_name, index=index)
        return elements

    def _numbers(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return coordinates, B factors and occupancies as float64, NaN where they have no value."""
        names = (*_POSITION, "B_iso_or_equiv", "occupancy")
        missing = [name for name in names if name not in self._site.names]
        if set(missing) & set(_POSITION):
            raise StructureFileError(f"{self._where}: atom_site has no column {missing[0]}. Coordinates are required.")
        present = [name for name in names if name not in missing]
        numbers = {name: self._column(name, rows).numbers(self._item(name)) for name in present}
        for name in missing:
            numbers[name] = np.full(len(numbers["Cartn_x"]), np.nan)
        if "B_iso_or_equiv" in missing:
            self.notes.append("atom_site has no column B_iso_or_equiv")
        return numbers

    def _preferred(
        self, names: tuple[str, str], rows: Rows, decode: Callable[[ColumnValues], np.ndarray]
    ) -> np.ndarray:
        """Return the first column that is present, with the values of the second where it is masked."""
        present = [name for name in names if name in self._site.names]
        if not present:
            raise StructureFileError(f"{self._where}: atom_site has neither {names[0]} nor {names[1]}.")
        column = self._column(present[0], rows)
        values = decode(column)
        if present[0] != names[0]:
            self.notes.append(f"atom_site has no column {names[0]}; {names[1]} was read")
        elif column.mask is not None and len(present) > 1:
            other = self._column(present[1], rows)
            is_masked = column.mask != 0
            is_filled = is_masked
            if other.mask is not None:
                is_filled = is_masked & (other.mask == 0)
            without_either = int(is_masked.sum() - is_filled.sum())
            if without_either:
                self.notes.append(f"{without_either} atoms have neither {names[0]} nor {names[1]}")
            if is_filled.any():
                values = np.where(is_filled, decode(other), values)
                self.notes.append(f"{int(is_filled.sum())} atoms without {names[0]}; {names[1]} was read")
        return values

    def _bonds(self, atoms: AtomArray) -> BondList | None:
        """Return the bonds of ligands that ``chem_comp_bond`` has; None if there are none."""
        table = self._component_bonds
        if table is None or not set(_BOND) <= set(table.names):
            return None
        columns = [table.column(name).texts().tolist() for name in _BOND]
        bonded_names: dict[str, list[tuple[str, str]]] = {}  # by component
        for component, first, second in zip(*columns, strict=True):
            if component not in AMINO_ACID_NAMES:
                bonded_names.setdefault(component, []).append((first, second))
        is_chosen = np.isin(atoms.res_name, list(bonded_names))
        bonds: list[tuple[int, int]] = []
        for start, stop in _runs_of_residues(atoms, np.flatnonzero(is_chosen)):
            names_of_molecule = atoms.atom_name[start:stop].tolist()
            pairs = _bonded_rows(names_of_molecule, bonded_names[str(atoms.res_name[start])])
            bonds += [(start + a, start + b) for a, b in pairs]
        return BondList(len(atoms), np.array(bonds)) if bonds else None

    def _box(self) -> np.ndarray | None:
        """Return the unit cell vectors, ``(3, 3)`` float, Å; None without a cell that has a volume."""
        cell = self._cell
        if cell is None or cell.size != 1 or not set(_CELL) <= set(cell.names):
            return None
        values = [cell.column(name).numbers(f"{self._where}: cell.{name}") for name in _CELL]
        a, b, c, alpha, beta, gamma = (v.item() for v in values)
        return unit_cell_vectors((a, b, c), (alpha, beta, gamma))


def _bonded_rows(names: list[str], bonded_names: list[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Yield the rows of bonded atoms of one molecule; a name has several rows in alternate locations."""
    rows_of_name: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows_of_name.setdefault(name, []).append(row)
    for first, second in bonded_names:
        yield from product(rows_of_name.get(first, ()), rows_of_name.get(second, ()))


def _runs_of_residues(atoms: AtomArray, rows: np.ndarray) -> list[tuple[int, int]]:
    """Return the first row and the one after the last of each residue among ``rows`` ``(R,)``, ascending."""
    if len(rows) == 0:
        return []
    is_first = np.ones(len(rows), bool)
    is_first[1:] = np.diff(rows) > 1
    for name in ("chain_id", "res_id", "ins_code", "res_name"):
        values = atoms.get_annotation(name)[rows]
        is_first[1:] |= values[1:] != values[:-1]
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(rows)) - 1
    return list(zip(rows[first].tolist(), (rows[last] + 1).tolist(), strict=True))
