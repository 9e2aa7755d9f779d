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
    chain_types = np.array(list(chain), np.uint8)
    query_types = np.array(list(query), np.uint8)
    (alignment,) = align_optimal(
        _sequence(chain_types), _sequence(query_types), _matrix(), _GAP_PENALTY, local=True, max_number=1
    )
    is_aligned = (alignment.trace >= 0).all(1)
    pairs = alignment.trace[is_aligned]
    columns[pairs[:, 0]] = pairs[:, 1]

    chain_types = chain_types[pairs[:, 0]]
    query_types = query_types[pairs[:, 1]]
    is_known = (chain_types != UNKNOWN) & (query_types != UNKNOWN)
    is_substituted = (chain_types != query_types) & is_known
    return ChainMatch(columns, pairs[is_substituted, 0])


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
        here = _first_difference(chain, query)
        there = here
    return here, _around(letters_of(chain), here), _around(letters_of(query), there)


def _first_difference(first: bytes, second: bytes) -> int:
    """Return the first place at which two sequences differ; the length of the shorter one if it is the beginning."""
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return place
    return min(len(first), len(second))


def _around(letters: str, index: int) -> str:
    begin = max(0, index - _BEFORE)
    end = index + _AFTER
    before = letters[begin:index]
    after = letters[index + 1 : end]
    if begin > 0:
        before = f"…{before}"
    if end < len(letters):
        after = f"{after}…"
    return f"{before}[{letters[index : index + 1]}]{after}"
