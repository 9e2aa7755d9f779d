"""Numbers as people and spreadsheets write them: decimal mark, thousands separators, minus and percent signs."""

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
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?P<mark>['’ \u00a0\u2009\u202f])\d{3}(?:(?P=mark)\d{3})*(?:[.,]\d*)?")
_MINUS = "\u2212"
_NAMES = {".": "decimal point", ",": "decimal comma"}


@dataclass(frozen=True)
class NumberFormat:
    """Notation of the numbers of a column.

    Parameters
    ----------
    decimal : {".", ","}
    thousands : str
        Mark that separates thousands; "" if none does.
    is_percent : bool
        True if every number has a percent sign; it is the unit, and the numbers are not divided by 100.
    """

    decimal: str = "."
    thousands: str = ""
    is_percent: bool = False

    def __str__(self) -> str:
        """Return what differs from plain numbers, e.g. "decimal comma, thousands separated by '.'"."""
        parts = [_NAMES[","]] if self.decimal == "," else []
        return ", ".join([*parts, *([f"thousands separated by {self.thousands!r}"] if self.thousands else ())])


def parse_number(text: str, form: NumberFormat) -> float | None:
    """Return the number in a cell, or None if it is not a number of this format.

    Examples
    --------
    >>> parse_number("1.234,5", NumberFormat(",", "."))
    1234.5
    """
    text = _without_groups(text.removesuffix("%").rstrip() if form.is_percent else text)
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
        True for tables separated by semicolons, where ``1,234`` and ``1.234`` both may be a thousand.
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
    written = [(row, text.removesuffix("%").rstrip()) for row, text in cells]
    texts = [(row, _without_groups(text)) for row, text in written]
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
    groups = {match["mark"]: cell for cell in written if (match := _GROUPED.fullmatch(_plain_minus(cell[1])))}
    separated = [cell for cell in texts if other in cell[1]]
    groups |= {other: separated[0]} if separated else {}
    if len(groups) > 1:
        (row, text), (second, another) = list(groups.values())[:2]
        raise LabelError(
            f"{what}: row {row} is {text!r}, row {second} is {another!r}. Write numbers without thousands separators."
        )
    return NumberFormat(decimal, next(iter(groups), ""), bool(marked))


def _plain_minus(text: str) -> str:
    return "-" + text[1:] if text.startswith(_MINUS) else text


def _without_groups(text: str) -> str:
    """Return a number with an ASCII minus sign, and without apostrophes or spaces between thousands."""
    text = _plain_minus(text)
    match = _GROUPED.fullmatch(text)
    return text.replace(match["mark"], "") if match else text


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
    is_usual = mark == "." and not prefers_comma and not has_decimal_comma
    if not is_usual or len({m for _, number in texts for m in ".," if m in number}) > 1:
        thousand, fraction = re.sub(r"[.,]", "", text), text.replace(",", ".")
        raise LabelError(
            f"{what}: row {row} is {text!r}, which may be {thousand} or {fraction}. "
            "Write the numbers without thousands separators, or with another number of decimals."
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
