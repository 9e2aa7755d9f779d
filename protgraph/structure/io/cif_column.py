"""Values of one mmCIF or BinaryCIF column as texts or numbers, with a mask for ``.`` and ``?``.

Decimal numbers of text are converted column by column with NumPy, with the result of ``float`` bit for bit: an integer
below 2⁵³ divided by a power of ten up to 10²² is rounded correctly (IEEE 754).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from protgraph.errors import StructureFileError

__all__ = ["CategoryTable", "ColumnValues", "DataBlock", "canonical_name", "parse_columns"]

_PLUS, _MINUS, _DOT, _ZERO = (ord(c) for c in "+-.0")
_DIGITS = 15  # characters of a number that fit a float64 without rounding
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
        ``(rows,)`` bytes (ASCII), str or numbers.
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
        if self.mask is not None and len(self.mask) != len(self.values):
            raise ValueError(f"{len(self.values)} values and {len(self.mask)} elements of the mask")

    def select(self, rows: slice | np.ndarray) -> ColumnValues:
        """Return some rows."""
        return ColumnValues(self.values[rows], None if self.mask is None else self.mask[rows])

    def texts(self, *, blank: bool = False) -> np.ndarray:
        """Return str, ``(rows,)``; masked values as "." and "?", or as "" if ``blank``."""
        kind = self.values.dtype.kind
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
        kind = self.values.dtype.kind
        if kind in "SU":
            numbers = _parse_numbers(self.values, np.zeros(0) if self.mask is None else self.mask, where)
        else:
            numbers = self.values.astype(np.float64)  # a copy, which the mask may change
        if self.mask is not None:
            numbers[self.mask != 0] = np.nan
        return numbers

    def integers(self, where: str) -> np.ndarray:
        """Return int64, ``(rows,)``; -1 for masked values; errors as for :meth:`numbers`."""
        if self.mask is None and self.values.dtype.kind in "iu":
            return self.values.astype(np.int64)
        numbers = self.numbers(where)
        if self.mask is not None:
            numbers[self.mask != 0] = -1
        wrong = ~((np.abs(numbers) < 2**31) & (numbers == np.floor(numbers)))
        if wrong.any():
            row = int(wrong.argmax())
            raise StructureFileError(f"{where}: {_text(self.values[row])!r} is not a 32-bit integer (row {row + 1}).")
        return numbers.astype(np.int64)


def _widen(values: np.ndarray) -> np.ndarray:
    """Convert ASCII bytes to str."""
    size = values.dtype.itemsize
    codes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), size)  # (rows, characters)
    return codes.astype(np.uint32).view(f"U{size}")[:, 0]


def _parse_numbers(values: np.ndarray, mask: np.ndarray, where: str) -> np.ndarray:
    """Parse texts: plain decimals with NumPy, the others (exponents, uncertainties, long numbers) one by one."""
    numbers = np.full(len(values), np.nan)
    is_plain = np.zeros(len(values), bool)
    if values.dtype.kind == "S" and len(values) > _FEW:
        numbers, is_plain = _plain_decimals(values)
    for row in np.flatnonzero(~is_plain).tolist():
        if not (len(mask) and mask[row]):
            numbers[row] = _parse_number(_text(values[row]), where, row)
    return numbers


def _plain_decimals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert ``[-]digits[.digits]`` of at most 15 characters to float64; return the numbers and where that is so."""
    size = values.dtype.itemsize
    chars = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), size)  # (rows, size)
    width = min(size, _DIGITS) + 1
    padded = np.zeros((width, len(values)), np.uint8)  # the last character is 0
    padded[:-1] = chars[:, : width - 1].T
    digit = padded - np.uint8(_ZERO)
    is_digit, is_dot = digit <= 9, padded == _DOT
    is_minus = padded[0] == _MINUS
    is_stop = ~is_digit
    is_stop[0] &= ~is_minus
    is_plain = ~(is_stop & ~is_dot & (padded != 0)).any(axis=0)
    is_plain &= (is_dot.view(np.uint8).sum(axis=0, dtype=np.uint8) <= 1) & is_digit.any(axis=0)
    if size > _DIGITS:
        is_plain &= ~chars[:, _DIGITS:].any(axis=1)
    digit *= is_digit
    # The digits as one integer of `width` digits, 0 in place of the dot; before the dot it is `joined // (10 scale)`.
    powers = 10.0 ** np.arange(width)[::-1]
    joined = powers @ digit
    is_before, stop = np.ones(len(values), bool), np.zeros(len(values), np.uint8)  # the dot, or the end
    for row in is_stop:
        is_before &= ~row
        stop += is_before
    scale = powers[stop]
    numbers = joined - 9.0 * np.floor(joined / (10.0 * scale)) * scale
    numbers /= scale
    return np.negative(numbers, out=numbers, where=is_minus), is_plain


def _parse_number(text: str, where: str, row: int) -> float:
    """Parse one number, with an exponent or a standard uncertainty in parentheses, or NaN or infinity."""
    match = _NUMBER.fullmatch(text)
    if match is None and not _NOT_FINITE.fullmatch(text):
        raise StructureFileError(f"{where}: {text!r} is not a number (row {row + 1}). Is the file damaged?")
    return float(text if match is None else match[1])


def _text(value: bytes | str | float) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def parse_columns(columns: Sequence[ColumnValues], where: Sequence[str]) -> np.ndarray:
    """Return several columns of one length as float64, ``(columns, rows)``; see :meth:`ColumnValues.numbers`.

    Columns of ASCII text are parsed together, which is faster for small files.
    """
    numbers = np.full((len(columns), len(columns[0].values)), np.nan)
    is_plain = np.zeros(numbers.shape, bool)
    if numbers.size and all(column.values.dtype.kind == "S" for column in columns):
        joined, plain = _plain_decimals(np.concatenate([column.values for column in columns]))
        numbers, is_plain = joined.reshape(numbers.shape), plain.reshape(numbers.shape)
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
