"""Write mmCIF text: quoted values, and categories as pairs of tag and value or as loops.

References
----------
CIF 1.1 syntax, Hall & McMahon (eds.) 2005, International Tables for Crystallography G, chapter 2.2.
"""

# Not biotite: `#`, `$a`, `?` and `.` are written without quotes, in 12 times the time (biotite 1.6.0, 2026-11-26).

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["Columns", "category_text", "cif_category", "decimal_texts", "quote", "quote_all"]

Columns = Mapping[str, np.ndarray]
"""Item of a category → its values as they are written, ``(rows,)`` bytes, padded with blanks or not."""

_RESERVED = ("data_", "save_", "loop_", "stop_", "global_")
_FIRST = "_#$'\"[];"  # a value without quotes does not begin with one of these
_NEEDS_QUOTES = re.compile(r"""[\s'"]|[^\x21-\x7e]""")
_QUOTE_ENDS = {"'": re.compile(r"'\s"), '"': re.compile(r'"\s')}  # only such a quote ends a value
_BLANK, _ZERO, _MINUS, _POINT = (ord(c) for c in " 0-.")


def quote(text: str) -> str:
    r"""Return a text as a value of CIF, with quotes or as a text field where it would be read as something else.

    A line of a text field cannot begin with ";": a blank is put before it.

    Examples
    --------
    >>> [quote(text) for text in ("A", "#", "?", "loop_", "O5'", "a b's")]
    ['A', "'#'", "'?'", "'loop_'", '"O5\'"', '"a b\'s"']
    """
    if text.isalnum() and text.isascii():  # most values
        return text
    if _is_plain(text):
        return text
    if "\n" not in text:
        for mark, ends in _QUOTE_ENDS.items():
            if mark not in text or (mark == '"' and not ends.search(text)):
                return f"{mark}{text}{mark}"
    inside = text.replace("\n;", "\n ;")
    return f"\n;{inside}\n;"


def _is_plain(text: str) -> bool:
    """Return True if a text is read as itself without quotes."""
    if not text or text[0] in _FIRST or text in (".", "?"):
        return False
    return not text.lower().startswith(_RESERVED) and not _NEEDS_QUOTES.search(text)


def quote_all(texts: Iterable[str | None]) -> np.ndarray:
    """Return each text as a value of CIF, ``(rows,)`` bytes, and None as "."; see :func:`quote`."""
    texts = list(texts)
    quoted = {text: b"." if text is None else quote(text).encode() for text in set(texts)}
    return np.array([quoted[text] for text in texts], dtype=None if texts else "S1")


def decimal_texts(values: np.ndarray, decimals: int) -> np.ndarray:
    """Return numbers in fixed-point notation, with blanks behind short ones; "?" for NaN.

    ``"%.3f"`` takes ten times as long, which is half of the time of writing a file.

    ``values``: ``(R,)`` numbers. Returns ``(R,)`` bytes.

    Examples
    --------
    >>> decimal_texts(np.array([1.5, -0.25, 123.0, np.nan]), 2).tolist()
    [b'1.50   ', b'-0.25  ', b'123.00 ', b'?      ']
    """
    values = values.astype(np.float64)
    is_number = np.isfinite(values)
    units = np.rint(np.where(is_number, values, 0.0) * 10.0**decimals).astype(np.int64)
    size = np.abs(units)
    powers = 10 ** np.arange(1, 19)
    digits = np.maximum(np.searchsorted(powers, size, side="right") + 1, decimals + 1)  # (rows,)
    width = int(digits.max(initial=1)) + 2  # with a minus and a point
    # The characters from right to left: digits, the point before the decimals, and the minus before the first digit.
    chars = np.full((len(values), width), _BLANK, np.uint8)
    column = width - 1
    for digit in range(width - 2):
        if digit == decimals and decimals:
            chars[:, column] = _POINT
            column -= 1
        size, last = np.divmod(size, 10)
        chars[:, column] = np.where(digit < digits, last + _ZERO, _BLANK)
        column -= 1
    first = width - digits - bool(decimals)
    rows = np.flatnonzero(units < 0)
    first[rows] -= 1
    chars[rows, first[rows]] = _MINUS
    # Move each number to the left, and the blanks before it behind it.
    columns = (first[:, None] + np.arange(width)) % width
    chars = np.take_along_axis(chars, columns, axis=1)
    chars[~is_number] = _BLANK
    chars[~is_number, 0] = ord("?")
    return chars.view(f"S{width}")[:, 0]


def category_text(name: str, columns: Columns) -> bytes:
    """Return a category as text: a pair of tag and value per item if it has one row, else a loop.

    ``columns``: at least one column, ``(R,)`` bytes each, with at least one row.
    """
    tags = [f"_{name}.{item}" if item else f"_{name}" for item in columns]
    values = list(columns.values())
    if len(values[0]) == 1:
        pairs = zip(tags, values, strict=True)
        text = b"".join(tag.encode() + b" " + value[0] + b"\n" for tag, value in pairs)
    else:
        header = "".join(f"{tag}\n" for tag in tags).encode()
        text = b"loop_\n" + header + _rows(values)
    return text + b"#\n"


def cif_category(name: str, columns: Mapping[str, np.ndarray]) -> str:
    """Return a category of mmCIF as text, with empty texts as "." and three decimals of numbers.

    ``name``: name of the category without underscore. ``columns``: item → ``(R,)`` texts, integers or numbers; at least
    one column with at least one row.

    Examples
    --------
    >>> columns = {"id": np.array([1, 2]), "type": np.array(["polymer", "non-polymer"])}
    >>> print(cif_category("entity", columns))
    loop_
    _entity.id
    _entity.type
    1 polymer
    2 non-polymer
    #
    """
    written = {}
    for item, values in columns.items():
        if values.dtype.kind == "U":
            written[item] = quote_all(text or None for text in values.tolist())
        else:
            written[item] = decimal_texts(values, 3 if values.dtype.kind == "f" else 0)
    return category_text(name, written).decode()


def _rows(columns: Iterable[np.ndarray]) -> bytes:
    """Return a line per row, with each column at the same place of all lines unless a value has several lines."""
    columns = [np.ascontiguousarray(column) for column in columns]
    if any(b"\n" in column.tobytes() for column in columns):
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return b"".join(b" ".join(row) + b"\n" for row in rows)
    blocks = []
    for column in columns:
        characters = column.view(np.uint8).reshape(len(column), -1)
        blocks += [characters, np.full((len(column), 1), _BLANK, np.uint8)]
    table = np.concatenate(blocks, axis=1)
    table[:, -1] = ord("\n")
    return table.tobytes().replace(b"\0", b" ")
