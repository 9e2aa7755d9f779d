"""Repairs of text that real programs write and the formats' readers refuse."""

from __future__ import annotations

import re
from os import PathLike

from biotite.structure import infer_elements

from protgraph.errors import StructureFileError

__all__ = ["complete_records", "strip_indent"]

# Columns of atom records, wwPDB file format 3.3.
_NUMBER = {"x": slice(30, 38), "y": slice(38, 46), "z": slice(46, 54)}
_DEFAULTS = {"occupancy": (slice(54, 60), "  1.00"), "B factor": (slice(60, 66), "  0.00")}
_NAME, _ELEMENT = slice(12, 16), slice(76, 78)


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


def strip_indent(text: str) -> str:
    """CIF text without the indentation that Phenix gives its loops and biotite's reader stumbles over."""
    if " _atom_site." not in text and "\t_atom_site." not in text:
        return text
    return re.sub(r"^[ \t]+(?!;)", "", text, flags=re.MULTILINE)
