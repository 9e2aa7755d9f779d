"""Convert columns of PDB atom records to numbers and texts with NumPy.

Numbers equal those of ``float`` bit for bit: a whole number divided by a power of ten is rounded correctly (IEEE 754).

Not biotite 1.6: it parses each record in Python; this is 7 times as fast on files of 230 residues and 10 times on the
larger ones of full entries (biotite 1.6.0, 2026-11-22). Not biotite ≥ 1.7, whose reader is that of fastpdb: it requires
Python 3.12, and protgraph supports 3.11. Not gemmi: the conversion of its atoms to arrays in Python takes longer (gemmi
0.7.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

__all__ = ["NUMBERS", "parse_numbers", "parse_texts"]

NUMBERS = {"x": (30, 38), "y": (38, 46), "z": (46, 54), "occupancy": (54, 60), "B factor": (60, 66), "number": (22, 26)}
"""Columns of the numbers of an atom record, from 0 (wwPDB file format 3.3); "number" is that of the residue."""

# Pairs of characters of a number are looked up in tables; the sum of the entries is the number in thousandths and these
# flags.
_VALUE = (1 << 24) - 1
_MINUS = 1 << 24
_NO_DIGIT = 1 << 25  # none before the point
_HALF = 1 << 26  # of the first two pairs: characters that only one of them may have
_INVALID = 1 << 28


def parse_numbers(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parse the numbers of atom records that have the standard form: blanks, an optional minus, and all digits.

    Parameters
    ----------
    table : ndarray
        ``(A, 80)`` uint8, ASCII.

    Returns
    -------
    values : ndarray
        ``(6, A)`` float64 in the order of :data:`NUMBERS`; undefined where not valid.
    valid : ndarray
        ``(6, A)`` bool, False for any other form, e.g. blank, hybrid-36, NaN, or with other decimals.
    """
    pairs = np.ascontiguousarray(table.view("<u2").T)  # (40, A)
    coordinate, decimal = _pair_tables()
    total = np.stack(
        [
            *(_look_up(coordinate, pairs[place : place + 4]) for place in (15, 19, 23)),
            *(_look_up(decimal, pairs[place : place + 3]) for place in (27, 30)),
            _look_up(coordinate[:2], pairs[11:13]),
        ]
    )
    valid = total < 2 * _HALF
    valid[5] &= total[5] & _NO_DIGIT == 0
    values = (total & _VALUE) / 1000.0
    is_negative = (total & _MINUS).astype(bool)
    if is_negative.any():
        np.negative(values, out=values, where=is_negative)
    return values, valid


def _look_up(tables: Sequence[np.ndarray], pairs: np.ndarray) -> np.ndarray:
    """Return the sum of the entries of all pairs, ``(places, A)`` uint16 to ``(A,)`` int32."""
    total = tables[0].take(pairs[0])
    for entries, pair in zip(tables[1:], pairs[1:], strict=True):
        total += entries.take(pair)
    return total


@cache
def _pair_tables() -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return the entries of all pairs of characters, ``(65536,)`` int32, for each place of a number.

    Returns
    -------
    coordinate : tuple of ndarray
        Two pairs before the point, the point with a decimal, and two decimals; a residue number has the first two.
    decimal : tuple of ndarray
        A pair before the point, a character with the point, and two decimals: occupancies and B factors.

    Notes
    -----
    Before the point are blanks, an optional minus, and digits. If the first pair is not blank, only digits follow.
    """
    high, low = np.divmod(np.arange(1 << 16), 1 << 8)  # second and first character
    first, second = low - ord("0"), high - ord("0")
    is_first, is_second = (first >= 0) & (first <= 9), (second >= 0) & (second <= 9)
    digits = is_first & is_second
    is_open = (low == ord(" ")) | (low == ord("-"))
    one_digit = is_open & is_second
    none = (low == ord(" ")) & ((high == ord(" ")) | (high == ord("-")))
    has_minus = (one_digit & (low == ord("-"))) | (none & (high == ord("-")))
    sign = np.where(digits | one_digit | none, np.where(has_minus, _MINUS, 0), _INVALID)
    number = np.where(digits, 10 * first + second, np.where(one_digit, second, 0))
    leading = sign + np.where(none & (high == ord(" ")), 0, _HALF)
    last = sign + np.where(digits, 0, _HALF) + np.where(none, _NO_DIGIT, 0)
    before_point = np.where(is_first, first * 1000, np.where(low == ord("-"), _MINUS, 0) + _HALF)
    before_point = np.where((is_first | is_open) & (high == ord(".")), before_point, _INVALID)
    after_point = np.where((low == ord(".")) & is_second, second * 100, _INVALID)
    coordinate = (number * 100_000 + leading, number * 1000 + last, after_point, np.where(digits, number, _INVALID))
    decimal = (number * 10_000 + leading, before_point, np.where(digits, number * 10, _INVALID))
    return tuple(t.astype(np.int32) for t in coordinate), tuple(t.astype(np.int32) for t in decimal)


def parse_texts(field: np.ndarray, width: int) -> np.ndarray:
    """Convert characters to strings without surrounding blanks.

    Parameters
    ----------
    field : ndarray
        ``(A, w)`` uint8, ASCII, w ≤ 4.
    width : int
        Length of the strings of the result.

    Returns
    -------
    ndarray
        ``(A,)`` str of this length.
    """
    points = np.zeros((len(field), width), np.uint32)  # Unicode code points
    if field.shape[1] == 1:
        points[:, 0] = field[:, 0] * (field[:, 0] != ord(" "))
        return points.view(f"U{width}")[:, 0]
    packed = np.zeros((len(field), 4), np.uint8)
    packed[:, : field.shape[1]] = field
    code = packed.view("<u4")[:, 0]
    for _ in range(field.shape[1]):
        begins_blank = code & 0xFF == ord(" ")
        if not begins_blank.any():
            break
        code = np.where(begins_blank, code >> 8, code)
    for shift in range(8 * (field.shape[1] - 1), 0, -8):
        code = np.where(code >> shift == ord(" "), code & ((1 << shift) - 1), code)
    points[:, :4] = code.view(np.uint8).reshape(-1, 4)
    return points.view(f"U{width}")[:, 0]
