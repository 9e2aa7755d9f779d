"""Texts for people: numbers with nouns, numbers with the digits that matter, and tables of notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["count_noun", "format_decimals", "format_duration", "format_figure", "html_table", "note_line"]


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun.

    Examples
    --------
    >>> count_noun(1, "chain"), count_noun(2, "chain")
    ('1 chain', '2 chains')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def note_line(message: str) -> str:
    """Return a message as a line of the terminal; a warning is no note.

    Examples
    --------
    >>> note_line("4 waters left out"), note_line("warning: 2 chain breaks")
    ('note: 4 waters left out', 'warning: 2 chain breaks')
    """
    return message if message.startswith("warning: ") else f"note: {message}"


def format_figure(value: float) -> str:
    """Return a number with four decimals, or with four significant digits if it is small or large; "–" for NaN.

    Examples
    --------
    >>> format_figure(0.47312), format_figure(1.23456e-9), format_figure(123456.7)
    ('0.4731', '1.235e-09', '1.235e+05')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.4f}" if value == 0 or 0.01 <= abs(value) < 1000 else f"{value:.4g}"


def format_duration(seconds: float) -> str:
    """Return a time as "42 s", "3 min 20 s" or "1 h 05 min"; "…" for NaN.

    Examples
    --------
    >>> format_duration(41.7), format_duration(200), format_duration(3900)
    ('42 s', '3 min 20 s', '1 h 05 min')
    """
    if not math.isfinite(seconds):
        return "…"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"


def format_decimals(value: float, digits: int) -> str:
    """Return a number with this many decimals, or significant digits if all of these are 0; "–" for NaN.

    Examples
    --------
    >>> format_decimals(0.47312, 3), format_decimals(1.23456e-9, 3)
    ('0.473', '1.23e-09')
    """
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return f"{value:.{digits}g}" if value != 0 and float(text) == 0 else text


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = "") -> str:
    """Return a table as HTML for a notebook, with title and note; all text is escaped.

    Numbers are aligned on the right, and have at most four significant digits.

    Examples
    --------
    >>> html_table("1 <row>", ["name", "size"], [("a", 2)])[:40]
    '<table><caption style="text-align: left;'
    >>> "1 &lt;row&gt;" in html_table("1 <row>", ["name", "size"], [("a", 2)])
    True
    """

    def cell(value: object) -> str:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return f'<td style="text-align: {"right" if is_number else "left"}">{escape(text)}</td>'

    head = "".join(f'<th scope="col" style="text-align: left">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    caption = f'<caption style="text-align: left; font-weight: bold">{escape(title)}</caption>'
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
