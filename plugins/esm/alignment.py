"""Convert chains to token sequences: gaps, masked residues, and windows of long chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, END, LETTERS_3DI, MASK, START, TOKENS

from protgraph.errors import FieldError, OptionError

__all__ = [
    "GAP_TOKENS",
    "UNRESOLVED",
    "SequencePart",
    "SequenceWindow",
    "chain_rows",
    "chain_tokens",
    "check_window_options",
    "letter_numbers",
    "split_windows",
    "tokenize_batch",
]

UNRESOLVED = -1
"""Row of an unresolved residue."""

GAP_TOKENS: dict[str, int] = {"mask": MASK, "unknown": TOKENS.index("X")}
"""Token of an unresolved residue."""

_TOKEN = np.array(AATYPE_TOKENS)


def check_window_options(gaps: str, long: str, max_len: int) -> None:
    """Raise an :class:`OptionError` for invalid options."""
    if gaps not in ("join", *GAP_TOKENS):
        raise OptionError(f"invalid gaps: {gaps!r}. Allowed: 'join', 'mask', 'unknown'.")
    if long not in ("error", "chunk"):
        raise OptionError(f"invalid long: {long!r}. Allowed: 'error', 'chunk'.")
    if max_len < 2:
        raise OptionError(f"invalid max_len: {max_len}. Use an integer from 2.")


def chain_rows(protein: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray, *, gaps: str) -> list[np.ndarray]:
    """Return the residues of each chain of each protein in sequence order, ``(T,)`` int64 rows per chain.

    Parameters
    ----------
    protein, chain, seq_pos : ndarray
        ``(N,)`` int64; residues in any order.
    gaps : {"join", "mask", "unknown"}
        "join" leaves out unresolved residues; otherwise each unresolved residue that ``seq_pos`` counts is
        :data:`UNRESOLVED`.

    Raises
    ------
    FieldError
        Two residues of a chain have the same position.
    """
    order = np.lexsort((seq_pos, chain, protein))
    new = (np.diff(protein[order]) != 0) | (np.diff(chain[order]) != 0)
    if ((np.diff(seq_pos[order]) == 0) & ~new).any():
        raise FieldError("two residues of a chain have the same seq_pos.")
    chains = np.split(order, np.flatnonzero(new) + 1) if len(order) else []
    if gaps == "join":
        return chains
    filled = []
    for rows in chains:
        position = seq_pos[rows] - seq_pos[rows[0]]
        sequence = np.full(int(position[-1]) + 1, UNRESOLVED)
        sequence[position] = rows
        filled.append(sequence)
    return filled


def chain_tokens(rows: np.ndarray, aatype: np.ndarray, *, gaps: str, masked: np.ndarray | None = None) -> np.ndarray:
    """Return the tokens ``(T,)`` int64 of a chain; unknown residues are X, masked ones ``<mask>``.

    ``rows (T,)`` are those of :func:`chain_rows`. ``aatype (N,)`` int64 and ``masked (N,)`` bool are of all residues.
    """
    token = _TOKEN[aatype[rows]]  # tokens of UNRESOLVED are replaced below
    if masked is not None:
        token = np.where(masked[rows], MASK, token)
    return np.where(rows == UNRESOLVED, GAP_TOKENS.get(gaps, MASK), token)


def letter_numbers(backbone: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the numbers of the 3Di letters of a chain from 1, ``(T,)`` int64; 0 for unresolved residues.

    ``backbone (N, 4, 3)`` N, CA, C, O of all residues, Å; ``rows (T,)`` are those of :func:`chain_rows`.
    """
    from protgraph_plugins.similarity import structural_letters

    is_resolved = rows != UNRESOLVED
    numbers = np.zeros(len(rows), np.int64)
    letters = structural_letters(backbone[rows[is_resolved]])
    if letters:
        numbers[is_resolved] = [1 + LETTERS_3DI.index(letter) for letter in letters]
    return numbers


@dataclass(frozen=True)
class SequenceWindow:
    """A part of a sequence that is one model input: positions start … stop, of which ``keep`` are used."""

    start: int
    stop: int
    keep: slice

    def tokens(self, sequence: np.ndarray) -> np.ndarray:
        """Return ``<cls>``, the tokens of the window of ``sequence (T,)``, ``<eos>``: ``(stop - start + 2,)``."""
        return np.concatenate([[START], sequence[self.start : self.stop], [END]])


def split_windows(length: int, *, max_len: int, long: str, subject: str = "a chain") -> list[SequenceWindow]:
    """Split a sequence into one window, or into windows that overlap by half.

    Each position is taken from the window in which it is closer to the middle.

    Raises
    ------
    FieldError
        The sequence is longer than ``max_len``, and ``long="error"``.

    Examples
    --------
    >>> [(w.start, w.stop, w.keep.start, w.keep.stop) for w in split_windows(10, max_len=4, long="chunk")]
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 7), (6, 10, 7, 10)]
    """
    if length <= max_len:
        return [SequenceWindow(0, length, slice(0, length))]
    if long == "error":
        raise FieldError(
            f"sequence too long: {subject} has {length} residues. At most {max_len} (max_len) are allowed.\n"
            "Use single chains or domains, or overlapping windows: long='chunk'."
        )
    starts = [*range(0, length - max_len, max_len // 2), length - max_len]
    stops = [s + max_len for s in starts]
    meet = [0, *((stops[k] + starts[k + 1]) // 2 for k in range(len(starts) - 1)), length]
    spans: Sequence[tuple[int, int]] = list(zip(starts, stops, strict=True))
    return [SequenceWindow(a, b, slice(meet[k], meet[k + 1])) for k, (a, b) in enumerate(spans)]


@dataclass(frozen=True, eq=False)
class SequencePart:
    """One window of a chain of a batch: ``rows`` ``(T,)`` of the chain, ``tokens`` with ``<cls>`` and ``<eos>``."""

    rows: np.ndarray
    window: SequenceWindow
    tokens: np.ndarray

    @property
    def kept(self) -> slice:
        """Positions within the window that are used."""
        return slice(self.window.keep.start - self.window.start, self.window.keep.stop - self.window.start)


def tokenize_batch(
    protein: np.ndarray,
    chain: np.ndarray,
    seq_pos: np.ndarray,
    aatype: np.ndarray,
    masked: np.ndarray,
    *,
    gaps: str,
    max_len: int,
    long: str,
) -> tuple[np.ndarray, np.ndarray, list[SequencePart]]:
    """Return the model inputs of a batch; nodes of the same protein, chain and position (atoms) are one residue.

    Parameters
    ----------
    protein, chain, seq_pos, aatype : ndarray
        ``(N,)`` int64 of each node.
    masked : ndarray
        ``(N,)`` bool, nodes with a hidden type.
    gaps : str
        See :func:`chain_rows`.
    max_len, long
        See :func:`split_windows`.

    Returns
    -------
    residue : ndarray
        ``(N,)`` int64, residue of each node; residues are sorted by protein, chain and position.
    owner : ndarray
        ``(R,)`` int64, protein of each residue.
    parts : list of SequencePart
        Windows; their rows are residues. The kept positions cover every residue once.
    """
    keys = np.stack([protein, chain, seq_pos])  # (3, N)
    unique, first, residue = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    owner, sequence_parts = unique[0], []
    for rows in chain_rows(*unique, gaps=gaps):
        tokens = chain_tokens(rows, aatype[first], gaps=gaps, masked=masked[first])
        subject = f"a chain of protein {owner[rows.max()]} of the batch"
        cut = split_windows(len(rows), max_len=max_len, long=long, subject=subject)
        sequence_parts += [SequencePart(rows, w, w.tokens(tokens)) for w in cut]
    return residue.reshape(-1), owner, sequence_parts
