"""Tables of a number a residue and type: biases, types that are left out, profiles."""

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
    """Numbers of residue types, by residues in words.

    Parameters
    ----------
    path : str
        The file.
    rows : tuple of (int, str, mapping of str to float)
        Line, residues as in :func:`protgraph.design.selection.select_rows`, letter → number.
    """

    path: str
    rows: tuple[tuple[int, str, Mapping[str, float]], ...]

    def of(self, residues: Residues, types: int) -> np.ndarray:
        """``(N, types)`` float64; NaN where the table says nothing.

        Raises
        ------
        SelectionError
            A row of residues that are not there.
        OptionError
            A residue in two rows.
        """
        single = {name: [n] for n, name in enumerate(residues.ids)}
        table, lines = np.full((len(residues), types), np.nan), np.zeros(len(residues), int)
        for line, words, numbers in self.rows:
            try:
                rows = single[words] if words in single else select_rows(residues, words)
            except ProtgraphError as e:
                raise type(e)(f"{self.path}, line {line}: {e}") from e
            twice = [n for n in rows if lines[n]]
            if twice:
                raise OptionError(
                    f"{self.path}: {residues.name} {residues.ids[twice[0]]} is in lines {lines[twice[0]]} and {line}"
                )
            lines[rows] = line
            for letter, number in numbers.items():
                if ALPHABET.index(letter) < types:
                    table[rows, ALPHABET.index(letter)] = number
        return table


def read_residue_table(path: str | Path) -> ResidueTable:
    """A CSV with the columns ``chain``, ``res_id``, maybe ``ins_code``, and one-letter codes; others are passed over.

    ``res_id`` is a number, a range ``10-20`` or ``10-``, or empty for all of the chain. An empty cell says nothing.

    Raises
    ------
    OptionError
        A file that is missing, without these columns, or with other than numbers.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as e:
        raise OptionError(f"table {str(path)!r} cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise OptionError(f"table {str(path)!r} is no text") from e
    reader = csv.DictReader(text.splitlines())
    columns = list(reader.fieldnames or ())
    letters = [c for c in columns if c in tuple(ALPHABET)]
    if not {"chain", "res_id"} <= set(columns) or not letters:
        raise OptionError(f"{path}: a table has the columns chain, res_id and one-letter codes; this one: {columns}")
    rows = tuple(_row(path, reader.line_num, row, letters) for row in reader)
    if not rows:
        raise OptionError(f"{path}: the table has no row")
    return ResidueTable(str(path), rows)


def _row(path: str | Path, line: int, row: Mapping[str, str], letters: list[str]) -> tuple[int, str, dict[str, float]]:
    place = f"{(row['res_id'] or '').strip()}{(row.get('ins_code') or '').strip()}"
    words = f"{row['chain'].strip()}:{place}" if place else row["chain"].strip()
    numbers: dict[str, float] = {}
    for letter in letters:
        text = (row[letter] or "").strip()
        try:
            number = float(text) if text else None
        except ValueError as e:
            raise OptionError(f"{path}, line {line}, column {letter}: {text!r} is no number") from e
        if number is not None and not math.isfinite(number):
            raise OptionError(f"{path}, line {line}, column {letter}: {text!r} is no finite number")
        if number is not None:
            numbers[letter] = number
    return line, words, numbers
