"""Repairs of text that real programs write and the formats' readers refuse."""

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
    """PDB text with occupancy 1.00, B factor 0.00 and the element of the atom's name where records leave them out.

    Parameters
    ----------
    text : str
        Content of a PDB file.
    path : str or PathLike
        What an error calls it.

    Returns
    -------
    tuple
        The text, and a note on each number filled in; biotite itself warns of elements.

    Raises
    ------
    StructureFileError
        With the line, where an atom record has no number in the columns of one.

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
    """Fill in the elements of some atom records; biotite 2.0 warns that it does so itself, and fails."""
    if not rows:
        return
    found = infer_elements([lines[i][_NAME].strip() for i in rows])
    for i, element in zip(rows, found, strict=True):
        line = lines[i].ljust(_ELEMENT.stop)
        lines[i] = f"{line[: _ELEMENT.start]}{element:>2}{line[_ELEMENT.stop :]}"


def _check_number(line: str, columns: slice, name: str, path: str | PathLike[str], i: int) -> None:
    try:
        float(line[columns])
    except ValueError:
        where = f"{path}: line {i + 1}, columns {columns.start + 1}–{columns.stop}"
        raise StructureFileError(f"{where}: {line[columns]!r} is no number for {name}; is the file cut off?") from None


def check_last_record(text: str, path: str | PathLike[str] = "PDB text") -> None:
    """Raise :class:`StructureFileError` where a PDB file ends inside a number of an atom record, which reads well.

    Examples
    --------
    >>> check_last_record("ATOM      1  CA  GLY A   1      11.000  12.000  13.0")
    Traceback (most recent call last):
    protgraph.errors.StructureFileError: PDB text: ends in column 52, inside a number of its last record: it is cut off
    """
    last = text[text.rfind("\n") + 1 :]
    end = len(last.rstrip(" \r"))
    numbers = (*_NUMBER.values(), *(columns for columns, _ in _DEFAULTS.values()))
    inside = end <= _NUMBER["x"].start or any(n.start < end < n.stop for n in numbers)
    if last.startswith(("ATOM  ", "HETATM")) and inside:
        raise StructureFileError(f"{path}: ends in column {end}, inside a number of its last record: it is cut off")


def decode_hexadecimal(text: str) -> tuple[str, tuple[str, ...]]:
    """PDB text with the hexadecimal residue numbers that CHARMM and VMD write after 9999 in hybrid-36.

    Parameters
    ----------
    text : str
        Content of a PDB file.

    Returns
    -------
    tuple
        The text, and a note where numbers were read so.

    Notes
    -----
    A number is hexadecimal where it goes on counting: 2710 after 9999, and then whatever equals the number before or is
    one more. Anything else is decimal again; 271a elsewhere stays the error that it is.
    """
    if _LAST not in text or not _MAY_OVERFLOW.search(text):
        return text, ()
    lines, before, is_hex, found = text.split("\n"), 0, False, 0
    for i, line in enumerate(lines):
        if not line.startswith(("ATOM  ", "HETATM")):
            continue
        written = line[_RESIDUE].strip()
        number = _hexadecimal(written)
        is_hex = number in (before, before + 1) if is_hex else (before == int(_LAST) and written == _NEXT)
        if is_hex:
            lines[i] = f"{line[: _RESIDUE.start]}{_hybrid36(number)}{line[_RESIDUE.stop :]}"
            before, found = number, found + 1
        else:
            before = int(written) if written.isdecimal() else 0
    if not found:
        return text, ()
    return "\n".join(lines), (f"residue numbers of {found} atom records after {_LAST} read as hexadecimal",)


def _hexadecimal(text: str) -> int:
    """The number, -1 where it is none."""
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _hybrid36(number: int) -> str:
    """A number from 10000 to 1223055 in four characters (cci.lbl.gov/hybrid_36): A000 to ZZZZ in base 36."""
    rest, digits = number - 10_000 + 10 * 36**3, ""
    for _ in range(4):
        rest, digit = divmod(rest, 36)
        digits = _DIGITS[digit] + digits
    return digits


def strip_indent(text: str) -> str:
    """CIF text without the indentation that Phenix gives its loops and biotite's reader stumbles over."""
    if " _atom_site." not in text and "\t_atom_site." not in text:
        return text
    return re.sub(r"^[ \t]+(?!;)", "", text, flags=re.MULTILINE)
