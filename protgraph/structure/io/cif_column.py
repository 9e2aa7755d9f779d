"""Values of one mmCIF or BinaryCIF column as texts or numbers, with a mask for ``.`` and ``?``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from protgraph.errors import StructureFileError
from protgraph.structure.io.decimals import plain_decimals

__all__ = ["CategoryTable", "ColumnValues", "DataBlock", "canonical_name"]

_FEW = 8  # numbers that are parsed faster one by one
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\(\d+\))?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)

_NAMES = (
    *("atom_site", "cell", "ma_qa_metric", "pdbx_struct_assembly_gen", "pdbx_struct_oper_list"),
    *("group_PDB", "id", "type_symbol", "label_alt_id", "label_asym_id", "label_seq_id", "label_comp_id"),
    *("label_atom_id", "auth_asym_id", "auth_seq_id", "auth_comp_id", "auth_atom_id", "pdbx_PDB_ins_code"),
    *("pdbx_PDB_model_num", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv"),
    *("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma"),
    *("name", "assembly_id", "oper_expression", "asym_id_list", "atom_site_anisotrop"),
    *(f"matrix[{i}][{j}]" for i in (1, 2, 3) for j in (1, 2, 3)),
    *(f"vector[{i}]" for i in (1, 2, 3)),
)
_CANONICAL = {name.lower(): name for name in _NAMES}


def canonical_name(name: str) -> str:
    """Return the spelling of the mmCIF dictionary for a category or item that is read; CIF ignores case.

    Examples
    --------
    >>> canonical_name("cartn_X"), canonical_name("Details")
    ('Cartn_x', 'Details')
    """
    return _CANONICAL.get(name.lower(), name)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Values of one column.

    ``values``: ``(rows,)`` bytes (ASCII), str or numbers. With ``index``: distinct texts, ``(texts,)`` str. ``mask``:
    ``(rows,)`` uint8: 0 for a value, 1 for ``.`` (inapplicable), 2 for ``?`` (unknown). None: all are values.
    ``index``: ``(rows,)`` integer, the text of each row among ``values``, as BinaryCIF stores it; −1 is the last one.

    Examples
    --------
    >>> column = ColumnValues(np.array([b"1.5", b"?", b"12.345(5)"]), np.array([0, 2, 0], np.uint8))
    >>> column.numbers("atom_site.Cartn_x").tolist()
    [1.5, nan, 12.345]
    """

    values: np.ndarray
    mask: np.ndarray | None = None
    index: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.mask is not None and len(self.mask) != len(self):
            raise ValueError(f"{len(self)} values and {len(self.mask)} elements of the mask")

    def __len__(self) -> int:
        return len(self.values) if self.index is None else len(self.index)

    @property
    def is_text(self) -> bool:
        """True for values that are text, not numbers."""
        return self.values.dtype.kind in "SU"

    @property
    def is_constant(self) -> bool:
        """True if no value is masked and all are equal."""
        which = self.values if self.index is None else self.index
        return self.mask is None and bool((which == which[:1]).all())

    def select(self, rows: slice | np.ndarray) -> ColumnValues:
        """Return some rows: a slice, or ``(R,)`` indices or mask."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        mask = None if self.mask is None else self.mask[rows]
        if self.index is not None:
            return ColumnValues(self.values, mask, self.index[rows])
        return ColumnValues(self.values[rows], mask)

    def texts(self, *, width: int = 1, blank: bool = False) -> np.ndarray:
        """Return str of at least ``width`` characters, ``(rows,)``; masked values are "." and "?", or ""."""
        if blank and self.mask is not None and self.mask.all():
            return np.zeros(len(self), f"U{width}")
        texts = self._rows(_widen(self.values, width))
        if self.mask is None:
            return texts
        return np.where(self.mask == 0, texts, "" if blank else np.array(["", ".", "?"])[self.mask])

    def equals(self, text: str) -> np.ndarray:
        """Return True for rows with this text, ``(rows,)`` bool; masked values have none."""
        same = self._rows(_widen(self.values, 1) == text)
        return same if self.mask is None else same & (self.mask == 0)

    def numbers(self, where: str) -> np.ndarray:
        """Return float64, ``(rows,)``; NaN for masked values."""
        if self.is_text:
            numbers = _parse_numbers(self._rows(self.values), self.mask, where)
        else:
            numbers = self.values.astype(np.float64)  # a copy, which the mask may change
        if self.mask is not None:
            numbers[self.mask != 0] = np.nan
        return numbers

    def integers(self, where: str) -> np.ndarray:
        """Return int64, ``(rows,)``; -1 for masked values; errors as for :meth:`numbers`."""
        if self.mask is None and not self.is_text and self.values.dtype.kind in "iu":
            return self.values.astype(np.int64)
        numbers = self.numbers(where)
        if self.mask is not None:
            numbers[self.mask != 0] = -1
        wrong = ~((np.abs(numbers) < 2**31) & (numbers == np.floor(numbers)))
        if wrong.any():
            row = int(wrong.argmax())
            text = _text(self._rows(self.values), row)
            raise StructureFileError(f"{where}: {text!r} is not a 32-bit integer (row {row + 1}).")
        return numbers.astype(np.int64)

    def _rows(self, of_values: np.ndarray) -> np.ndarray:
        """Return what is given for each of the values, by row."""
        return of_values if self.index is None else of_values.take(self.index)


def _widen(values: np.ndarray, width: int) -> np.ndarray:
    """Convert values of any kind to str of at least ``width`` characters."""
    if values.dtype.kind != "S":
        texts = values if values.dtype.kind == "U" else values.astype(str)
        return texts.astype(f"U{width}") if texts.itemsize < 4 * width else texts
    size = values.dtype.itemsize
    codes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), size)  # (rows, characters)
    points = np.zeros((len(values), max(size, width)), np.uint32)
    points[:, :size] = codes
    return points.view(f"U{points.shape[1]}")[:, 0]


def _parse_numbers(values: np.ndarray, mask: np.ndarray | None, where: str) -> np.ndarray:
    """Parse texts: plain decimals with NumPy, the others (exponents, uncertainties, long numbers) one by one."""
    numbers = np.full(len(values), np.nan)
    is_plain = np.zeros(len(values), bool)
    if values.dtype.kind == "S" and len(values) > _FEW:
        chars = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)  # (rows, width)
        numbers, is_plain = plain_decimals(np.ascontiguousarray(chars.T))
    is_other = ~is_plain if mask is None else ~is_plain & (mask == 0)
    for row in np.flatnonzero(is_other).tolist():
        numbers[row] = _parse_number(_text(values, row), where, row)
    return numbers


def _parse_number(text: str, where: str, row: int) -> float:
    """Parse one number, with an exponent or a standard uncertainty in parentheses, or NaN or infinity."""
    match = _NUMBER.fullmatch(text)
    if match is None and not _NOT_FINITE.fullmatch(text):
        raise StructureFileError(f"{where}: {text!r} is not a number (row {row + 1}). Is the file damaged?")
    return float(text if match is None else match[1])


def _text(values: np.ndarray, row: int) -> str:
    return values[row].decode("ascii") if values.dtype.kind == "S" else str(values[row])


class CategoryTable(Protocol):
    """A category: columns of equal length that are decoded when they are read."""

    names: tuple[str, ...]
    size: int

    def column(self, name: str, rows: slice | np.ndarray = slice(None)) -> ColumnValues:
        """Return some rows of a column: a slice, or ``(R,)`` indices or mask."""
        ...


class DataBlock(Protocol):
    """A data block: categories by name."""

    name: str

    def get(self, category: str) -> CategoryTable | None:
        """Return a category; None if the block does not have it."""
        ...
