"""Tables of one number per residue and residue type: biases, omitted types, profiles."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.design.selection import select_rows
from protgraph.errors import OptionError, ProtgraphError
from protgraph.structure import ALPHABET, Residues

__all__ = ["ResidueTable", "read_residue_table"]


@dataclass(frozen=True, eq=False)
class ResidueTable:
    """Numbers per residue type for selections of residues.

    Parameters
    ----------
    path : str
        Table file, for error messages.
    rows : tuple of (int, str, mapping of str to float)
        Line number, selection as in :func:`protgraph.design.selection.select_rows`, and numbers by one-letter code.
    """

    path: str
    rows: tuple[tuple[int, str, Mapping[str, float]], ...]

    def values(self, residues: Residues, types: int) -> np.ndarray:
        """Return ``(N, types)`` float64 for these residues; NaN where the table has no number.

        Raises
        ------
        SelectionError
            A row selects residues that do not exist.
        OptionError
            Two rows select the same residue.
        """
        single = {name: [n] for n, name in enumerate(residues.ids)}
        table, lines = np.full((len(residues), types), np.nan), np.zeros(len(residues), int)
        for line, selection, numbers in self.rows:
            try:
                rows = single[selection] if selection in single else select_rows(residues, selection)
            except ProtgraphError as e:
                raise type(e)(f"{self.path}, line {line}: {e}") from e
            twice = [n for n in rows if lines[n]]
            if twice:
                raise OptionError(
                    f"duplicate residue in a table: {residues.ids[twice[0]]} of {residues.name} "
                    f"({self.path}, lines {lines[twice[0]]} and {line})."
                )
            lines[rows] = line
            for letter, number in numbers.items():
                if ALPHABET.index(letter) < types:
                    table[rows, ALPHABET.index(letter)] = number
        return table


def read_residue_table(path: str | Path) -> ResidueTable:
    """Read a CSV file with the columns ``chain``, ``res_id``, optionally ``ins_code``, and one-letter codes.

    ``res_id`` is a number, a range ``10-20`` or ``10-``, or empty for the whole chain. Empty cells have no number.
    Other columns are ignored.

    Raises
    ------
    OptionError
        The file is not readable, lacks these columns or has cells that are not numbers.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as e:
        raise OptionError(f"table not readable: {path} ({e.strerror}).") from e
    except UnicodeDecodeError as e:
        raise OptionError(f"table not readable: {path}. The content is not UTF-8 text.") from e
    reader = csv.DictReader(text.splitlines())
    columns = list(reader.fieldnames or ())
    letters = [c for c in columns if c in tuple(ALPHABET)]
    if not {"chain", "res_id"} <= set(columns) or not letters:
        raise OptionError(f"wrong columns: {columns} ({path}). Required: chain, res_id and one-letter codes.")
    rows = tuple(_row(path, reader.line_num, row, letters) for row in reader)
    if not rows:
        raise OptionError(f"empty table: {path}.")
    return ResidueTable(str(path), rows)


def _row(path: str | Path, line: int, row: Mapping[str, str], letters: list[str]) -> tuple[int, str, dict[str, float]]:
    place = f"{(row['res_id'] or '').strip()}{(row.get('ins_code') or '').strip()}"
    selection = f"{row['chain'].strip()}:{place}" if place else row["chain"].strip()
    numbers: dict[str, float] = {}
    for letter in letters:
        text = (row[letter] or "").strip()
        try:
            number = float(text) if text else None
        except ValueError as e:
            raise OptionError(f"not a number: {text!r} ({path}, line {line}, column {letter}).") from e
        if number is not None and not math.isfinite(number):
            raise OptionError(f"not a finite number: {text!r} ({path}, line {line}, column {letter}).")
        if number is not None:
            numbers[letter] = number
    return line, selection, numbers
