"""Recognition of label columns with one label per residue in each cell, e.g. ``HHEEC`` or ``0110`` for a protein."""

from __future__ import annotations

import re
from collections.abc import Sequence

from protgraph.data.datasets.label_table import LabelTable
from protgraph.errors import LabelError

__all__ = ["check_no_label_strings"]

_SEPARATORS = re.compile(r"[\s,;|]+")
_QUOTES = "[](){}'\" "
_PLAIN_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?")
_FEWEST = 4  # residues of a protein whose cell is compared
_SHARE = 0.8  # of the compared cells
_TOLERANCE = 0.3  # unresolved residues of a longer cell, relative to the residues of the structure
_LONG = 20  # characters from which a length that is not exact is compared
_SHOWN = 20


def check_no_label_strings(table: LabelTable, name: str, residues: Sequence[Sequence[int]]) -> None:
    """Raise if the cells of a label column per protein have one label for each residue."""
    compared = []
    for row, text, chains in zip(table.rows.tolist(), table.labels[name].tolist(), residues, strict=True):
        if sum(chains) >= _FEWEST and len(text) >= _FEWEST:
            compared.append((row, text, {sum(chains), *chains}))
    if not compared or all(_is_number(text) for _, text, _ in compared):
        return
    fits = []
    for row, text, numbers in compared:
        fits += [(row, text, number) for number in sorted(numbers) if _has_label_per_residue(text, number)][:1]
    if len(fits) < _SHARE * len(compared):
        return
    row, text, number = fits[0]
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    labels = min(_lengths(text), key=lambda length: abs(length - number))
    raise LabelError(
        f"{table.where}: column {name!r}: row {row} is {shown!r}, {labels} labels for {number} residues. Most cells "
        f"({len(fits)} of {len(compared)}) have one label per residue. Write one row for each residue: columns file, "
        f"chain, res_id and {name}. docs/user_data.md has a script for it."
    )


def _is_number(text: str) -> bool:
    """Return True for a plain number, but not for digits that are all 0 and 1."""
    return _PLAIN_NUMBER.fullmatch(text) is not None and not set(text) <= {"0", "1"}


def _lengths(text: str) -> tuple[int, int]:
    """Return the number of characters without separators, and the number of parts between separators."""
    parts = [part.strip(_QUOTES) for part in _SEPARATORS.split(text.strip(_QUOTES))]
    return len("".join(parts)), len(parts)


def _has_label_per_residue(text: str, residues: int) -> bool:
    """Return True if a cell has a label for each residue, or for some more that are not in the structure."""
    characters, parts = _lengths(text)
    if residues in (characters, parts):
        return True
    longest = (1 + _TOLERANCE) * residues
    is_string = characters == len(text) and characters >= _LONG
    return (is_string and residues < characters <= longest) or (parts >= _LONG and residues < parts <= longest)
