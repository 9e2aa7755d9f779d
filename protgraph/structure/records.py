"""Repairs of text that real programs write and the formats' readers refuse; nothing is guessed about atoms."""

from __future__ import annotations

import re
from os import PathLike

from protgraph.errors import StructureFileError

__all__ = ["complete_records", "strip_indent"]

# Columns of atom records, wwPDB file format 3.3.
_NUMBER = {"x": slice(30, 38), "y": slice(38, 46), "z": slice(46, 54)}
_DEFAULTS = {"occupancy": (slice(54, 60), "  1.00"), "B factor": (slice(60, 66), "  0.00")}


def complete_records(text: str, path: str | PathLike[str] = "PDB text") -> tuple[str, tuple[str, ...]]:
    """PDB text with occupancy 1.00 and B factor 0.00 where atom records leave them out.

    Parameters
    ----------
    text : str
        Content of a PDB file.
    path : str or PathLike
        What an error calls it.

    Returns
    -------
    tuple
        The text, and one note on each thing filled in; no notes if nothing was missing.

    Raises
    ------
    StructureFileError
        With the line, where an atom record has no number in the columns of one.

    Examples
    --------
    >>> text, notes = complete_records("ATOM      1  CA  GLY A   1      11.000  12.000  13.000")
    >>> text[54:], notes
    ('  1.00  0.00', ('no occupancy in 1 atom records, read as 1.00', 'no B factor in 1 atom records, read as 0.00'))
    """
    lines, filled = text.splitlines(), dict.fromkeys(_DEFAULTS, 0)
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
    notes = {name: f"no {name} in {n} atom records, read as {_DEFAULTS[name][1].strip()}" for name, n in filled.items()}
    return "\n".join(lines), tuple(notes[name] for name, n in filled.items() if n)


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
