"""Convert columns of PDB atom records to numbers and texts with NumPy.

Numbers equal those of ``float`` bit for bit: a whole number divided by a power of ten is rounded correctly (IEEE 754).

Not biotite 1.6: it parses each record in Python. Not biotite ≥ 1.7, whose reader is that of fastpdb: it requires
Python 3.12, and protgraph supports 3.11. Not gemmi: the conversion to arrays in Python takes longer than parsing (gemmi
0.7.5).
"""

from __future__ import annotations

import numpy as np

__all__ = ["NUMBERS", "parse_numbers", "parse_texts"]

NUMBERS = {"x": (30, 38), "y": (38, 46), "z": (46, 54), "occupancy": (54, 60), "B factor": (60, 66), "number": (22, 26)}
"""Columns of the numbers of an atom record, from 0 (wwPDB file format 3.3); "number" is that of the residue."""

# Eight characters per number, those of a coordinate: four before the point, three after it.
_POINT = np.uint64(0x1E << 32)  # "." ^ "0", fifth character
_MINUS = np.uint64(ord("-") ^ ord("0"))
_BLANKS = np.uint64(0x10101010)  # " " ^ "0"
_ZEROS = np.uint64(int.from_bytes(b"0" * 8, "little"))
_ABOVE_NINE = np.uint64(0x7676767676767676)  # sets the highest bit of bytes larger than 9
_HIGH_BITS = np.uint64(0x8080808080808080)
_DECIMALS = np.uint64(0xFFFFFF0000000000)
_WHOLE, _FIFTH = np.uint64(0xFFFFFFFF), np.uint64(0xFF << 32)
_PAIRS = np.uint64(0x000000FF000000FF)
_HUNDREDS, _UNITS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_1, _7, _8, _10, _16, _32, _255 = (np.uint64(n) for n in (1, 7, 8, 10, 16, 32, 255))
_SCALE = 1000.0


def parse_numbers(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parse the numbers of atom records that have the standard form: blanks, an optional minus, and all digits.

    Parameters
    ----------
    table : ndarray
        ``(A, 80)`` uint8, ASCII.

    Returns
    -------
    values : ndarray
        ``(A, 6)`` float64 in the order of :data:`NUMBERS`; undefined where not valid.
    valid : ndarray
        ``(A, 6)`` bool, False for any other form, e.g. blank, hybrid-36, NaN, or with other decimals.
    """
    text = np.full((len(table), len(NUMBERS), 8), ord("0"), np.uint8)
    text[:, :3] = table[:, 30:54].reshape(-1, 3, 8)
    text[:, 3:5, 0] = ord(" ")
    text[:, 3:5, 1:7] = table[:, 54:66].reshape(-1, 2, 6)  # two decimals; the third is 0
    text[:, 5, :4] = table[:, 22:26]
    text[:, 5, 4] = ord(".")
    word = text.view("<u8")[:, :, 0] ^ _ZEROS  # (A, 6): digits are 0 to 9 now
    other = (word + _ABOVE_NINE) & _HIGH_BITS  # highest bit set in bytes that are not digits
    before = ((other & _WHOLE) >> _7) * _255  # mask of such bytes before the point
    is_prefix = before & (before + _1) == 0
    unexpected = (word & before) ^ (_BLANKS & before)
    last = (before + _1) >> _8  # 1 in the last byte before the digits, 0 without one
    is_negative = unexpected == (_BLANKS & _255 ^ _MINUS) * last
    is_negative &= unexpected != 0
    valid = is_prefix & (is_negative | (unexpected == 0))
    valid &= (word & _FIFTH == _POINT) & (other & _DECIMALS == 0)
    valid[:, 5] &= before[:, 5] != _WHOLE  # a residue number has a digit
    digits = word & ~before
    digits = ((digits & _WHOLE) << _8) | (digits & _DECIMALS)  # without the point
    digits = digits * _10 + (digits >> _8)
    digits = ((digits & _PAIRS) * _HUNDREDS + ((digits >> _16) & _PAIRS) * _UNITS) >> _32
    values = digits.astype(np.float64) / _SCALE
    return np.where(is_negative, -values, values), valid


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
        points[:, 0] = field[:, 0]
        points[points == ord(" ")] = 0
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
