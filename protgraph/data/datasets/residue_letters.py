"""Column of a label table with the type of each residue, to find labels of other residues than intended."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from protgraph.data.datasets.label_table import LabelTable
from protgraph.structure.residues.alphabet import ALPHABET, aatype

__all__ = ["ResidueLetters", "find_residue_letters"]

_NAMES = frozenset(
    ("resname", "resn", "residuename", "residuetype", "restype", "residue", "aa", "aminoacid", "authcompid", "pdbres")
)


class ResidueLetters(NamedTuple):
    """Name of the column, and the one-letter code of each row, ``(R,)`` str."""

    column: str
    codes: np.ndarray


def find_residue_letters(table: LabelTable, labels: Collection[str]) -> ResidueLetters | None:
    """Return the residue types of a table, from a column that is not a label of the task; None if it has none."""
    for name, cells in table.labels.items():
        if name in labels or re.sub(r"[\s_.\-]", "", name).lower() not in _NAMES:
            continue
        texts = np.char.upper(cells)
        known = {text: _letter(text) for text in np.unique(texts).tolist()}
        if all(text == "" or len(text) in (1, 3) for text in known) and any(code != "X" for code in known.values()):
            return ResidueLetters(name, np.array([known[text] for text in texts.tolist()]))
    return None


def _letter(text: str) -> str:
    """Return the one-letter code of a residue name of one or three letters; "X" for another."""
    if len(text) == 1:
        return text if text in ALPHABET else "X"
    return ALPHABET[aatype(text)] if text else "X"
