"""Numbers as people and spreadsheets write them: decimal point or comma, thousands separators, percent signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from protgraph.errors import LabelError

__all__ = ["NumberFormat", "parse_number", "recognize_numbers"]

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_NUMBER = {  # decimal mark → thousands separated by the other mark, or not at all
    ".": re.compile(rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+|(?=\.\d))(?:\.\d*)?{_EXPONENT}"),
    ",": re.compile(rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+|(?=,\d))(?:,\d*)?{_EXPONENT}"),
}
_NAMES = {".": "decimal point", ",": "decimal comma"}


@dataclass(frozen=True)
class NumberFormat:
    """Notation of the numbers of a column.

    Parameters
    ----------
    decimal : {".", ","}
    has_thousands : bool
        True if the other mark separates thousands.
    is_percent : bool
        True if every number has a percent sign; it is the unit, and the numbers are not divided by 100.
    """

    decimal: str = "."
    has_thousands: bool = False
    is_percent: bool = False

    def __str__(self) -> str:
        """Return what differs from plain numbers, e.g. "decimal comma, thousands separated by '.'"."""
        other = "." if self.decimal == "," else ","
        parts = [_NAMES[","]] if self.decimal == "," else []
        return ", ".join([*parts, *([f"thousands separated by {other!r}"] if self.has_thousands else ())])


def parse_number(text: str, form: NumberFormat) -> float | None:
    """Return the number in a cell, or None if it is not a number of this format.

    Examples
    --------
    >>> parse_number("1.234,5", NumberFormat(",", has_thousands=True))
    1234.5
    """
    text = text.removesuffix("%").rstrip() if form.is_percent else text
    if not _NUMBER[form.decimal].fullmatch(text):
        return None
    other = "," if form.decimal == "." else "."
    return float(text.replace(other, "").replace(",", "."))


def recognize_numbers(
    cells: Sequence[tuple[int, str]], *, prefers_comma: bool, has_decimal_comma: bool, what: str
) -> NumberFormat | None:
    """Return the format of the numbers in a column; None if any cell is not a number.

    Parameters
    ----------
    cells : sequence of (int, str)
        Row number and text of each known cell.
    prefers_comma : bool
        True for tables separated by semicolons, where ``1,234`` has a decimal comma.
    has_decimal_comma : bool
        True if other columns of the table have decimal commas, so that ``1.234`` may be a thousand.
    what : str
        Table and column in errors.

    Raises
    ------
    LabelError
        Some numbers have a percent sign and others do not, the numbers follow no common convention, or they have two
        readings.
    """
    marked = [(row, text) for row, text in cells if text.endswith("%")]
    texts = [(row, text.removesuffix("%").rstrip()) for row, text in cells]
    fits = {mark: all(pattern.fullmatch(text) for _, text in texts) for mark, pattern in _NUMBER.items()}
    if not any(fits.values()):
        _check_one_convention(texts, what)
        return None
    if marked and len(marked) < len(cells):
        row, text = next((row, text) for row, text in cells if not text.endswith("%"))
        raise LabelError(
            f"{what}: row {marked[0][0]} is {marked[0][1]!r}, row {row} is {text!r}. "
            "Write all numbers with a percent sign, or none."
        )
    decimal = _decimal_mark(texts, fits, prefers_comma, has_decimal_comma, what)
    other = "," if decimal == "." else "."
    return NumberFormat(decimal, any(other in text for _, text in texts), bool(marked))


def _decimal_mark(
    texts: Sequence[tuple[int, str]], fits: dict[str, bool], prefers_comma: bool, has_decimal_comma: bool, what: str
) -> str:
    """Return the decimal mark of numbers that fit at least one convention."""
    if not all(fits.values()):
        return "." if fits["."] else ","
    row, text = next(((row, text) for row, text in texts if "," in text or "." in text), (0, ""))
    if not text:
        return "."
    mark = "," if "," in text else "."
    is_usual = prefers_comma if mark == "," else not has_decimal_comma
    if not is_usual or len({m for _, number in texts for m in ".," if m in number}) > 1:
        thousand, fraction = re.sub(r"[.,]", "", text), text.replace(",", ".")
        raise LabelError(
            f"{what}: row {row} is {text!r}, which may be {thousand} or {fraction}. "
            "Write the numbers without thousands separators."
        )
    return mark


def _check_one_convention(texts: Sequence[tuple[int, str]], what: str) -> None:
    """Raise if every cell is a number, but not all by the same convention."""
    fits = [(row, text, {m for m, pattern in _NUMBER.items() if pattern.fullmatch(text)}) for row, text in texts]
    if all(marks for _, _, marks in fits):
        (row, text), (other, second) = (
            next((row, text) for row, text, marks in fits if marks == {mark}) for mark in (".", ",")
        )
        raise LabelError(
            f"{what}: row {row} is {text!r} with a decimal point, row {other} is {second!r} with a decimal comma. "
            "Write all numbers with a decimal point and without thousands separators."
        )
