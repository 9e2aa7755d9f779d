"""Repair and interpret atom records that programs write beyond the columns of the PDB format; each reading is noted."""

# Not biotite 1.6.0: raises for blank occupancies and hexadecimal numbers, ignores column 21. Not gemmi 0.7.5: reads a
# blank B factor as 20, and every column 21 as part of the chain id (2026-11-22).

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import StructureFileError
from protgraph.structure.io.pdb_lines import NUMBERS, parse_numbers, parse_texts
from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES, THREE_LETTER

__all__ = [
    "check_last_record",
    "join_residue_numbers",
    "read_column_21",
    "read_residue_numbers",
    "repair_numbers",
    "shift_long_serials",
]

_DEFAULTS = {"occupancy": 1.0, "B factor": 0.0}
_SERIAL_END = 11  # columns 7–11
_LAST = 9999  # the largest residue number of four digits
_NEXT = "2710"  # the one after it, hexadecimal
_LETTERS = 26 * 36**3  # hybrid-36 numbers that begin with an upper-case letter
_NUMBER, _INS_CODE = 5, 26  # row of the residue number in the output of parse_numbers; column of the insertion code
_BLANK, _ZERO, _NINE = ord(" "), ord("0"), ord("9")

# Residues of which GROMOS, CHARMM and GROMACS write protonation states with a fourth letter: LYSH, HISE, ASPP, CYS2.
_WITH_FOURTH_LETTER = frozenset({"ARG", "ASP", "CYS", "GLU", "HIS", "LYS", "TYR", "UNK"})
_CHAIN_MARKERS = sorted(set(THREE_LETTER) - _WITH_FOURTH_LETTER)
_TERMINAL = sorted(f"{end}{name}" for end in "NC" for name in AMINO_ACID_NAMES)


def shift_long_serials(table: np.ndarray, rows: np.ndarray) -> list[str]:
    """Shift records with a serial number of more than five digits to the columns of the format, in place.

    ``table``: ``(A, 80)`` uint8, ASCII, atom records. ``rows``: ``(R,)`` int64, records to consider. Those whose
    coordinates are no numbers after the shift are unchanged.
    """
    count = 0
    for row in rows.tolist():
        text = table[row].tobytes()
        serial = re.match(rb"\d{6,}", text[6:])
        if serial is None:
            continue
        extra = serial.end() + 6 - _SERIAL_END
        shifted = text[:_SERIAL_END] + text[_SERIAL_END + extra :] + b" " * extra
        record = np.frombuffer(shifted, np.uint8)
        _, is_number = parse_numbers(record[None])
        if is_number[:3].all():
            table[row] = record
            count += 1
    if not count:
        return []
    return [f"{count} atom records with serial numbers of more than five digits shifted to their columns"]


def repair_numbers(
    table: np.ndarray, values: np.ndarray, valid: np.ndarray, line: np.ndarray, path: str | PathLike[str] = "PDB text"
) -> list[str]:
    """Read numbers of atom records that do not have the standard form, in place.

    Blank occupancies become 1.00 and blank B factors 0.00, the defaults of the format. Residue numbers may be hybrid-36
    or hexadecimal (:func:`read_residue_numbers`), all others any number that ``float`` reads.

    ``table``: ``(A, 80)`` uint8, ASCII. ``values``, ``valid``: ``(6, A)``, output of
    :func:`~protgraph.structure.io.pdb_lines.parse_numbers`; ``values`` is completed. ``line``: ``(A,)`` int64, line of
    each record, from 0.
    """
    notes = []
    for column, (name, (begin, end)) in enumerate(NUMBERS.items()):
        field = table[:, begin:end]
        rows = np.flatnonzero(~valid[column])
        if name == "number":
            notes += _repair_residue_numbers(field, values[column], rows, line, path)
            continue
        if len(rows) and name in _DEFAULTS:
            is_blank = (field[rows] == _BLANK).all(axis=1)
            num_blank = np.count_nonzero(is_blank)
            values[column, rows[is_blank]] = _DEFAULTS[name]
            if num_blank:
                notes.append(f"no {name} in {num_blank} atom records, read as {_DEFAULTS[name]:.2f}")
            rows = rows[~is_blank]
        for row in rows.tolist():
            values[column, row] = _float(_text(field[row]), name, path, int(line[row]))
    return notes


def _text(field: np.ndarray) -> str:
    return field.tobytes().decode("ascii")


def _float(text: str, name: str, path: str | PathLike[str], line: int) -> float:
    try:
        return float(text.replace("_", "?"))
    except ValueError as e:
        raise _not_a_number(text, name, path, line) from e


def _not_a_number(text: str, name: str, path: str | PathLike[str], line: int) -> StructureFileError:
    begin, end = NUMBERS[name]
    where = f"{path}: line {line + 1}, columns {begin + 1}–{end}"
    meaning = "residue number" if name == "number" else name
    return StructureFileError(f"{where}: {text!r} is not a number ({meaning}). Is the file truncated?")


def _repair_residue_numbers(
    field: np.ndarray, numbers: np.ndarray, rows: np.ndarray, line: np.ndarray, path: str | PathLike[str]
) -> list[str]:
    after_last = np.flatnonzero(numbers[:-1] == _LAST) + 1
    is_hexadecimal = any(_text(field[row]) == _NEXT for row in after_last.tolist())
    if len(rows) == 0 and not is_hexadecimal:
        return []
    texts = np.ascontiguousarray(field).view("S4")[:, 0].astype("U4").tolist()
    read, hexadecimal = read_residue_numbers(texts)
    for row, number in enumerate(read):
        if number is None:
            raise _not_a_number(texts[row], "number", path, int(line[row]))
    numbers[:] = read
    if not hexadecimal:
        return []
    return [f"residue numbers of {hexadecimal} atom records after {_LAST} read as hexadecimal"]


def read_residue_numbers(fields: Sequence[str]) -> tuple[list[int | None], int]:
    """Parse residue numbers: decimal, hybrid-36, or hexadecimal as CHARMM and VMD write them after 9999.

    Hexadecimal numbers begin with 2710 after 9999 and continue as long as each equals the previous one or is one more.
    In hybrid-36, A000 follows 9999 and a000 follows ZZZZ (cci.lbl.gov/hybrid_36).

    Examples
    --------
    >>> read_residue_numbers(["9999", "2710", "2711"]), read_residue_numbers(["9999", "A000", "a000"])
    (([9999, 10000, 10001], 2), ([9999, 10000, 1223056], 0))
    """
    numbers: list[int | None] = []
    before = 0  # the number before, 0 if it is none
    is_hexadecimal = False
    count = 0
    for text in fields:
        field = text.strip()
        hexadecimal = int(field, 16) if re.fullmatch("[0-9a-fA-F]+", field) else -1
        if is_hexadecimal:
            is_hexadecimal = hexadecimal in (before, before + 1)
        else:
            is_hexadecimal = before == _LAST and field == _NEXT
        number = hexadecimal if is_hexadecimal else _decimal_or_hybrid(field)
        numbers.append(number)
        before = number or 0
        count += is_hexadecimal
    return numbers, count


def _decimal_or_hybrid(text: str) -> int | None:
    if re.fullmatch("[+-]?[0-9]+", text):
        return int(text)
    if not re.fullmatch("[A-Z][0-9A-Z]{3}|[a-z][0-9a-z]{3}", text):
        return None
    number = int(text, 36) - 10 * 36**3 + _LAST + 1
    if text[0].islower():
        number += _LETTERS
    return number


def check_last_record(text: str, path: str | PathLike[str] = "PDB text") -> None:
    """Raise :class:`StructureFileError` if a PDB file ends inside a number of an atom record.

    A truncated number would be read as another number.

    Examples
    --------
    >>> check_last_record("ATOM      1  CA  GLY A   1      11.000  12.000  13.0")
    Traceback (most recent call last):
    protgraph.errors.StructureFileError: PDB text: truncated: the last atom record ends inside a number, in column 52
    """
    last = text[text.rfind("\n") + 1 :]
    end = len(last.rstrip(" \r"))
    numbers = [columns for name, columns in NUMBERS.items() if name != "number"]
    is_before_numbers = end <= NUMBERS["x"][0]
    is_inside_number = any(first < end < after for first, after in numbers)
    if last.startswith(("ATOM  ", "HETATM")) and (is_before_numbers or is_inside_number):
        raise StructureFileError(f"{path}: truncated: the last atom record ends inside a number, in column {end}")


def read_column_21(atoms: AtomArray, table: np.ndarray) -> list[str]:
    """Read column 21, which the format leaves blank, as part of a residue name or of the chain id, in place.

    ``table``: ``(A, 80)`` uint8, ASCII, atom records.

    NALA and CALA are ALA at the ends of a chain (Amber, GROMACS). Other names lose their fourth letter. It belongs to
    the chain id if it follows one of the amino acids of which no program writes longer names (gemmi, Phenix and Coot
    write chain ids of two characters to columns 21–22).
    """
    rows = np.flatnonzero(table[:, 20] != _BLANK)
    if len(rows) == 0:
        return []
    names = np.ascontiguousarray(table[rows, 17:21]).view("S4")[:, 0].astype("U4")
    notes = []
    is_terminal = np.isin(names, _TERMINAL)
    if is_terminal.any():
        atoms.res_name[rows[is_terminal]] = [name[1:] for name in names[is_terminal].tolist()]
        listed = ", ".join(dict.fromkeys(names[is_terminal].tolist()))
        notes.append(f"names of terminal residues read without N or C: {listed}")
    rows = rows[~is_terminal]
    if np.isin(atoms.res_name[rows], _CHAIN_MARKERS).any():
        atoms.chain_id[rows] = parse_texts(table[rows, 20:22], 4)
        listed = ", ".join(dict.fromkeys(atoms.chain_id[rows].tolist()))
        notes.append(f"chain ids of columns 21–22: {listed}")
    return notes


def join_residue_numbers(table: np.ndarray, values: np.ndarray) -> list[str]:
    """Read residue numbers of five digits, of which the last one is in the column of the insertion code, in place.

    ``table``: ``(A, 80)`` uint8, ASCII, atom records. ``values``: ``(6, A)``, output of
    :func:`~protgraph.structure.io.pdb_lines.parse_numbers`.

    A digit after a number of four digits is an insertion code only if the record before or after such records has this
    number too, as the residue in whose place others are inserted.
    """
    digit, number = table[:, _INS_CODE], values[_NUMBER]
    rows = np.flatnonzero((digit >= _ZERO) & (digit <= _NINE))
    rows = rows[(number[rows] >= 1000) & (number[rows] <= 9999)]
    if len(rows) == 0:
        return []
    blocks = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    last = len(number) - 1
    joined = []
    for block in blocks:
        begins_number = block[0] == 0 or number[block[0] - 1] != number[block[0]]
        ends_number = block[-1] == last or number[block[-1] + 1] != number[block[-1]]
        if begins_number and ends_number:
            joined.append(block)
    if not joined:
        return []
    rows = np.concatenate(joined)
    number[rows] = 10 * number[rows] + (digit[rows] - _ZERO)
    digit[rows] = _BLANK
    return [f"residue numbers of five digits in {len(rows)} atom records, with the last one in column 27"]
