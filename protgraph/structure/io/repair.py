"""Repair PDB and CIF text that programs write and file readers reject.

Not biotite: it raises for blank occupancies, for hexadecimal residue numbers of CHARMM and for indented CIF (biotite
1.6.0, 2026-11-22). Not gemmi: it reads a blank B factor as 20 without a note (gemmi 0.7.5, 2026-11-22).
"""

from __future__ import annotations

import re
import string
from os import PathLike

from biotite.structure import infer_elements

from protgraph.errors import StructureFileError

__all__ = ["check_last_record", "complete_records", "decode_hexadecimal", "strip_indent"]

# Columns of atom records, wwPDB file format 3.3.
_NUMBER = {"x": slice(30, 38), "y": slice(38, 46), "z": slice(46, 54)}
_DEFAULTS = {"occupancy": (slice(54, 60), "  1.00"), "B factor": (slice(60, 66), "  0.00")}
_NAME, _ELEMENT, _RESIDUE = slice(12, 16), slice(76, 78), slice(22, 26)

_DIGITS = string.digits + string.ascii_uppercase
_LAST = "9999"  # the largest residue number of four digits
_NEXT = "2710"  # the one after it, hexadecimal
_MAY_OVERFLOW = re.compile(rf"^(?:ATOM  |HETATM).{{16}}{_LAST}", re.MULTILINE)


def complete_records(text: str, path: str | PathLike[str] = "PDB text") -> tuple[str, tuple[str, ...]]:
    """Fill blank occupancies (1.00), B factors (0.00) and elements (by atom name) of PDB atom records.

    Parameters
    ----------
    text : str
        Content of a PDB file.
    path : str or PathLike
        Name of the file in errors.

    Returns
    -------
    tuple
        The text, and a note for each kind of number that was filled in.

    Raises
    ------
    StructureFileError
        A coordinate, occupancy or B factor is not a number; the message has line and columns.

    Examples
    --------
    >>> text, notes = complete_records("ATOM      1  CA  GLY A   1      11.000  12.000  13.000")
    >>> text[54:]
    '  1.00  0.00           C'
    >>> notes
    ('no occupancy in 1 atom records, read as 1.00', 'no B factor in 1 atom records, read as 0.00')
    """
    lines, filled, nameless = text.split("\n"), dict.fromkeys(_DEFAULTS, 0), []
    for i, line in enumerate(lines):
        if not line.startswith(("ATOM", "HETATM")):
            continue
        padded = line.ljust(66)
        for name, (columns, default) in _DEFAULTS.items():
            if not padded[columns].strip():
                padded = padded[: columns.start] + default + padded[columns.stop :]
                filled[name] += 1
            _check_number(padded, columns, name, path, i)
        for name, columns in _NUMBER.items():
            _check_number(padded, columns, name, path, i)
        lines[i] = padded
        if not padded[_ELEMENT].strip():
            nameless.append(i)
    notes = [f"no {x} in {n} atom records, read as {_DEFAULTS[x][1].strip()}" for x, n in filled.items() if n]
    _name_elements(lines, nameless)
    return "\n".join(lines), tuple(notes)


def _name_elements(lines: list[str], rows: list[int]) -> None:
    """Fill in the elements of some atom records; biotite 2.0 fails on blank ones."""
    if not rows:
        return
    elements = infer_elements([lines[i][_NAME].strip() for i in rows])
    for i, element in zip(rows, elements, strict=True):
        line = lines[i].ljust(_ELEMENT.stop)
        lines[i] = f"{line[: _ELEMENT.start]}{element:>2}{line[_ELEMENT.stop :]}"


def _check_number(line: str, columns: slice, name: str, path: str | PathLike[str], i: int) -> None:
    try:
        float(line[columns])
    except ValueError as e:
        where = f"{path}: line {i + 1}, columns {columns.start + 1}–{columns.stop}"
        raise StructureFileError(f"{where}: {line[columns]!r} is not a number ({name}). Is the file truncated?") from e


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
    numbers = (*_NUMBER.values(), *(columns for columns, _ in _DEFAULTS.values()))
    inside = end <= _NUMBER["x"].start or any(n.start < end < n.stop for n in numbers)
    if last.startswith(("ATOM  ", "HETATM")) and inside:
        raise StructureFileError(f"{path}: truncated: the last atom record ends inside a number, in column {end}")


def decode_hexadecimal(text: str) -> tuple[str, tuple[str, ...]]:
    """Convert the hexadecimal residue numbers that CHARMM and VMD write after 9999 to hybrid-36.

    Parameters
    ----------
    text : str
        Content of a PDB file.

    Returns
    -------
    tuple
        The text, and a note if there were such numbers.

    Notes
    -----
    Hexadecimal numbers begin with 2710 after 9999 and continue as long as each equals the previous one or is one more.
    All others are decimal; 271a elsewhere is an error of the reader.
    """
    if _LAST not in text or not _MAY_OVERFLOW.search(text):
        return text, ()
    lines, before, is_hex, count = text.split("\n"), 0, False, 0
    for i, line in enumerate(lines):
        if not line.startswith(("ATOM  ", "HETATM")):
            continue
        field = line[_RESIDUE].strip()
        number = _hexadecimal(field)
        is_hex = number in (before, before + 1) if is_hex else (before == int(_LAST) and field == _NEXT)
        if is_hex:
            lines[i] = f"{line[: _RESIDUE.start]}{_hybrid36(number)}{line[_RESIDUE.stop :]}"
            before, count = number, count + 1
        else:
            before = int(field) if field.isdecimal() else 0
    if not count:
        return text, ()
    return "\n".join(lines), (f"residue numbers of {count} atom records after {_LAST} read as hexadecimal",)


def _hexadecimal(text: str) -> int:
    """Parse a hexadecimal number; -1 if the text is not one."""
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _hybrid36(number: int) -> str:
    """Encode a number from 10000 to 1223055 as A000 to ZZZZ in base 36 (cci.lbl.gov/hybrid_36)."""
    rest, digits = number - 10_000 + 10 * 36**3, ""
    for _ in range(4):
        rest, digit = divmod(rest, 36)
        digits = _DIGITS[digit] + digits
    return digits


def strip_indent(text: str) -> str:
    """Remove the indentation of loops in CIF text of Phenix, which biotite's reader rejects."""
    if " _atom_site." not in text and "\t_atom_site." not in text:
        return text
    return re.sub(r"^[ \t]+(?!;)", "", text, flags=re.MULTILINE)
