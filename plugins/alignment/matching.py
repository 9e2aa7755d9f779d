"""Match the chains of a structure to the first sequence of an alignment, by identity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from biotite.sequence import GeneralSequence, LetterAlphabet
from biotite.sequence.align import SubstitutionMatrix, align_optimal

from protgraph.structure import ALPHABET

__all__ = ["ChainMatch", "letters_of", "match_chain", "show_difference"]

UNKNOWN = ALPHABET.index("X")
_ALPHABET = LetterAlphabet(ALPHABET)
#: Scores with which pieces of one sequence align, and others do not: an unresolved loop is a gap of any length.
_MATCH, _MISMATCH, _GAP_PENALTY = 5, -4, (-12, 0)
#: Residues of a chain that have to be in the alignment (tags and fusions are not), and identical ones of these.
_COVERED, _IDENTICAL = 0.5, 0.9
_BEFORE, _AFTER = 12, 28  # letters around a difference


class ChainMatch(NamedTuple):
    """Residues of a chain in the columns of an alignment.

    Parameters
    ----------
    columns : ndarray
        ``(L,)`` int64, column of each residue of the chain; −1 for one that the alignment does not have.
    substituted : ndarray
        ``(K,)`` int64, residues of the chain of another type than their column.
    """

    columns: np.ndarray
    substituted: np.ndarray

    @property
    def is_accepted(self) -> bool:
        """True if the chain and the alignment are of one protein."""
        aligned = int((self.columns >= 0).sum())
        covers = aligned >= _COVERED * len(self.columns)
        return aligned > 0 and covers and len(self.substituted) <= (1 - _IDENTICAL) * aligned


def match_chain(chain: bytes, query: bytes) -> ChainMatch:
    """Align a chain with the first sequence of an alignment, both as residue types.

    Residues that one of them lacks (unresolved loops, tags) are gaps of any length; X equals every type.
    """
    columns = np.full(len(chain), -1)
    start = query.find(chain)
    if start >= 0:
        return ChainMatch(start + np.arange(len(chain)), np.zeros(0, np.int64))
    first, second = (np.array(list(types), np.uint8) for types in (chain, query))
    best = align_optimal(_sequence(first), _sequence(second), _matrix(), _GAP_PENALTY, local=True, max_number=1)
    trace = best[0].trace
    pairs = trace[(trace >= 0).all(1)]
    columns[pairs[:, 0]] = pairs[:, 1]
    differ = first[pairs[:, 0]] != second[pairs[:, 1]]
    is_known = (first[pairs[:, 0]] != UNKNOWN) & (second[pairs[:, 1]] != UNKNOWN)
    return ChainMatch(columns, pairs[differ & is_known, 0])


def _sequence(types: np.ndarray) -> GeneralSequence:
    sequence = GeneralSequence(_ALPHABET)
    sequence.code = types
    return sequence


def _matrix() -> SubstitutionMatrix:
    scores = np.full((len(ALPHABET), len(ALPHABET)), _MISMATCH, np.int32)
    np.fill_diagonal(scores, _MATCH)
    scores[UNKNOWN] = scores[:, UNKNOWN] = 0
    return SubstitutionMatrix(_ALPHABET, _ALPHABET, scores)


def letters_of(types: bytes) -> str:
    """Return the one-letter codes of residue types."""
    return "".join(ALPHABET[number] for number in types)


def show_difference(chain: bytes, query: bytes) -> tuple[int, str, str]:
    """Return the first residue of a chain that differs from a sequence, and both sequences around it.

    The place is marked by brackets. Without an accepted match, sequences are compared from their beginnings.
    """
    match = match_chain(chain, query)
    if len(match.substituted) and (match.columns >= 0).mean() >= _COVERED:
        here = int(match.substituted[0])
        there = int(match.columns[here])
    else:
        here = next(
            (i for i, (a, b) in enumerate(zip(chain, query, strict=False)) if a != b), min(len(chain), len(query))
        )
        there = here
    return here, _around(letters_of(chain), here), _around(letters_of(query), there)


def _around(letters: str, place: int) -> str:
    begin, end = max(0, place - _BEFORE), place + _AFTER
    before, after = "…" if begin else "", "…" if end < len(letters) else ""
    return f"{before}{letters[begin:place]}[{letters[place : place + 1]}]{letters[place + 1 : end]}{after}"
