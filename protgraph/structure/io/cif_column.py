"""Values of one mmCIF or BinaryCIF column as texts or numbers, with a mask for ``.`` and ``?``.

Decimal numbers of text are converted by :mod:`protgraph.structure.io.decimals`, column by column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from protgraph.errors import StructureFileError
from protgraph.structure.io.decimals import plain_decimals

__all__ = ["CategoryTable", "ColumnValues", "DataBlock", "canonical_name", "parse_columns"]

_SPACE = ord(" ")
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

    Parameters
    ----------
    values : ndarray
        ``(rows,)`` bytes (ASCII), str or numbers, or ``(width, rows)`` uint8: ASCII characters, blank or 0 after the
        end of a text, which has no blanks.
    mask : ndarray, optional
        ``(rows,)`` uint8: 0 for a value, 1 for ``.`` (inapplicable), 2 for ``?`` (unknown). None: all are values.

    Examples
    --------
    >>> column = ColumnValues(np.array([b"1.5", b"?", b"12.345(5)"]), np.array([0, 2, 0], np.uint8))
    >>> column.numbers("atom_site.Cartn_x").tolist()
    [1.5, nan, 12.345]
    """

    values: np.ndarray
    mask: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.mask is not None and len(self.mask) != len(self):
            raise ValueError(f"{len(self)} values and {len(self.mask)} elements of the mask")

    def __len__(self) -> int:
        return self.values.shape[-1]

    @property
    def is_text(self) -> bool:
        """True for values that are text, not numbers."""
        return self.values.ndim == 2 or self.values.dtype.kind in "SU"

    @property
    def is_constant(self) -> bool:
        """True if no value is masked and all are equal."""
        return self.mask is None and bool((self.values == self.values[..., :1]).all())

    def select(self, rows: slice | np.ndarray) -> ColumnValues:
        """Return some rows."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        return ColumnValues(self.values[..., rows], None if self.mask is None else self.mask[rows])

    def texts(self, *, blank: bool = False) -> np.ndarray:
        """Return str, ``(rows,)``; masked values as "." and "?", or as "" if ``blank``."""
        kind = self.values.dtype.kind
        if self.values.ndim == 2:
            texts = _join_characters(self.values)
        else:
            texts = _widen(self.values) if kind == "S" else self.values if kind == "U" else self.values.astype(str)
        if self.mask is None:
            return texts
        if blank:
            return np.where(self.mask == 0, texts, "") if not self.mask.all() else np.zeros(len(texts), "U1")
        return np.where(self.mask == 0, texts, np.array(["", ".", "?"])[self.mask])

    def numbers(self, where: str) -> np.ndarray:
        """Return float64, ``(rows,)``; NaN for masked values.

        Parameters
        ----------
        where : str
            File and column, for errors.

        Raises
        ------
        StructureFileError
            A value is not a number.
        """
        if self.is_text:
            numbers = _parse_numbers(self.values, np.zeros(0) if self.mask is None else self.mask, where)
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
            raise StructureFileError(f"{where}: {_text(self.values, row)!r} is not a 32-bit integer (row {row + 1}).")
        return numbers.astype(np.int64)


def _widen(values: np.ndarray) -> np.ndarray:
    """Convert ASCII bytes to str."""
    size = values.dtype.itemsize
    codes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), size)  # (rows, characters)
    return codes.astype(np.uint32).view(f"U{size}")[:, 0]


def _join_characters(chars: np.ndarray) -> np.ndarray:
    """Convert ``(width, rows)`` ASCII characters to str, ``(rows,)``."""
    points = np.empty((chars.shape[1], len(chars)), np.uint32)  # (rows, width)
    for i, row in enumerate(chars):
        points[:, i] = row * (row > _SPACE)
    return points.view(f"U{len(chars)}")[:, 0]


def _characters(values: np.ndarray) -> np.ndarray:
    """Return the characters of bytes ``(rows,)``, ``(width, rows)`` uint8."""
    chars = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return np.ascontiguousarray(chars.T)


def _parse_numbers(values: np.ndarray, mask: np.ndarray, where: str) -> np.ndarray:
    """Parse texts: plain decimals with NumPy, the others (exponents, uncertainties, long numbers) one by one."""
    count = values.shape[-1]
    numbers = np.full(count, np.nan)
    is_plain = np.zeros(count, bool)
    if values.dtype.kind != "U" and count > _FEW:
        numbers, is_plain = plain_decimals(values if values.ndim == 2 else _characters(values))
    if not is_plain.all():
        for row in np.flatnonzero(~is_plain).tolist():
            if not (len(mask) and mask[row]):
                numbers[row] = _parse_number(_text(values, row), where, row)
    return numbers


def _parse_number(text: str, where: str, row: int) -> float:
    """Parse one number, with an exponent or a standard uncertainty in parentheses, or NaN or infinity."""
    match = _NUMBER.fullmatch(text)
    if match is None and not _NOT_FINITE.fullmatch(text):
        raise StructureFileError(f"{where}: {text!r} is not a number (row {row + 1}). Is the file damaged?")
    return float(text if match is None else match[1])


def _text(values: np.ndarray, row: int) -> str:
    if values.ndim == 2:
        return values[:, row].tobytes().rstrip(b" \n\0").decode("ascii")
    return values[row].decode("ascii") if values.dtype.kind == "S" else str(values[row])


def parse_columns(columns: Sequence[ColumnValues], where: Sequence[str]) -> np.ndarray:
    """Return several columns of one length as float64, ``(columns, rows)``; see :meth:`ColumnValues.numbers`.

    Columns of ASCII text are parsed together, which is faster for small files.
    """
    count = len(columns[0])
    numbers = np.full((len(columns), count), np.nan)
    is_plain = np.zeros(numbers.shape, bool)
    if numbers.size and all(column.is_text and column.values.dtype.kind != "U" for column in columns):
        chars = [c.values if c.values.ndim == 2 else _characters(c.values) for c in columns]
        joined = np.zeros((max(map(len, chars)), numbers.size), np.uint8)
        for i, each in enumerate(chars):
            joined[: len(each), i * count : (i + 1) * count] = each
        values, plain = plain_decimals(joined)
        numbers, is_plain = values.reshape(numbers.shape), plain.reshape(numbers.shape)
    for i, column in enumerate(columns):
        if not is_plain[i].all():
            numbers[i] = column.numbers(where[i])
    return numbers


class CategoryTable(Protocol):
    """A category: columns of equal length that are decoded when they are read."""

    names: tuple[str, ...]
    size: int

    def column(self, name: str, rows: slice | np.ndarray = slice(None)) -> ColumnValues:
        """Return some rows of a column."""
        ...


class DataBlock(Protocol):
    """A data block: categories by name."""

    name: str

    def get(self, category: str) -> CategoryTable | None:
        """Return a category; None if the block does not have it."""
        ...
