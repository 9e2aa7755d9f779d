"""Which token stands for which residue: chains as sequences, gaps, and windows of those that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.data.graph.esm_vocabulary import AATYPE_TOKENS, END, MASK, START, TOKENS
from protgraph.errors import FieldError, OptionError

__all__ = ["UNRESOLVED", "GAP_TOKENS", "SequencePart", "SequenceWindow", "chain_rows", "check_window_options", "tokenize_batch", "chain_tokens", "split_windows"]

UNRESOLVED = -1
"""In place of a residue where none is resolved."""

GAP_TOKENS: dict[str, int] = {"mask": MASK, "unknown": TOKENS.index("X")}
"""Token of an unresolved residue."""

_TOKEN = np.array(AATYPE_TOKENS)


def check_window_options(gaps: str, long: str, max_len: int) -> None:
    """Raises :class:`OptionError` for what is none of the choices."""
    if gaps not in ("join", *GAP_TOKENS):
        raise OptionError(f"gaps={gaps!r} is none of 'join', 'mask', 'unknown'")
    if long not in ("error", "chunk"):
        raise OptionError(f"long={long!r} is neither 'error' nor 'chunk'")
    if max_len < 2:
        raise OptionError(f"max_len={max_len}: a window holds 2 residues or more")


def chain_rows(protein: np.ndarray, chain: np.ndarray, seq_pos: np.ndarray, *, gaps: str) -> list[np.ndarray]:
    """Each chain of each protein as a sequence: ``(T,)`` int64, the residue at each place.

    Parameters
    ----------
    protein, chain, seq_pos : ndarray
        ``(N,)`` int64; residues stand in any order.
    gaps : {"join", "mask", "unknown"}
        With "join" the residues on both sides of a gap follow each other; otherwise each unresolved residue that
        ``seq_pos`` counts has a place too, which is :data:`UNRESOLVED`.

    Raises
    ------
    FieldError
        Two residues of a chain have one place.
    """
    order = np.lexsort((seq_pos, chain, protein))
    new = (np.diff(protein[order]) != 0) | (np.diff(chain[order]) != 0)
    if ((np.diff(seq_pos[order]) == 0) & ~new).any():
        raise FieldError("two residues of a chain have one seq_pos")
    chains = np.split(order, np.flatnonzero(new) + 1) if len(order) else []
    if gaps == "join":
        return chains
    made = []
    for rows in chains:
        place = seq_pos[rows] - seq_pos[rows[0]]
        whole = np.full(int(place[-1]) + 1, UNRESOLVED)
        whole[place] = rows
        made.append(whole)
    return made


def chain_tokens(rows: np.ndarray, aatype: np.ndarray, *, gaps: str, masked: np.ndarray | None = None) -> np.ndarray:
    """``(T,)`` int64 tokens of a chain: unknown residues are X, masked ones ``<mask>``."""
    token = _TOKEN[aatype[rows]]  # what UNRESOLVED takes is replaced below
    if masked is not None:
        token = np.where(masked[rows], MASK, token)
    return np.where(rows == UNRESOLVED, GAP_TOKENS.get(gaps, MASK), token)


@dataclass(frozen=True)
class SequenceWindow:
    """A part of a sequence that is read at once: places start … stop, of which ``keep`` are used."""

    start: int
    stop: int
    keep: slice

    def tokens(self, sequence: np.ndarray) -> np.ndarray:
        """``<cls>``, the tokens of the part, ``<eos>``."""
        return np.concatenate([[START], sequence[self.start : self.stop], [END]])


def split_windows(length: int, *, max_len: int, long: str, what: str = "a chain") -> list[SequenceWindow]:
    """How a sequence is read: at once, or in windows that overlap by half.

    Each place is taken from the window in whose middle it is more: two windows meet half-way through what they share.

    Raises
    ------
    FieldError
        It is longer than ``max_len``, and ``long="error"``.

    Examples
    --------
    >>> [(w.start, w.stop, w.keep.start, w.keep.stop) for w in windows(10, max_len=4, long="chunk")]
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 7), (6, 10, 7, 10)]
    """
    if length <= max_len:
        return [SequenceWindow(0, length, slice(0, length))]
    if long == "error":
        raise FieldError(
            f"{what} has {length} residues; ESM-2 was trained on {max_len} at most (max_len).\n"
            "Take chains or domains of it, or read it in overlapping windows: long='chunk'."
        )
    starts = [*range(0, length - max_len, max_len // 2), length - max_len]
    stops = [s + max_len for s in starts]
    meet = [0, *((stops[k] + starts[k + 1]) // 2 for k in range(len(starts) - 1)), length]
    spans: Sequence[tuple[int, int]] = list(zip(starts, stops, strict=True))
    return [SequenceWindow(a, b, slice(meet[k], meet[k + 1])) for k, (a, b) in enumerate(spans)]


@dataclass(frozen=True, eq=False)
class SequencePart:
    """One window of one chain of a batch: ``rows`` ``(T,)`` of the whole chain, and its ``tokens`` with both ends."""

    rows: np.ndarray
    window: SequenceWindow
    tokens: np.ndarray

    @property
    def kept(self) -> slice:
        """Which of the places that are read are used."""
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
    """What is read of a batch; nodes of one protein, chain and place are one residue, as its atoms are.

    Returns
    -------
    residue : ndarray
        ``(N,)`` int64, residue of each node; residues are in the order of protein, chain and place.
    owner : ndarray
        ``(R,)`` int64, protein of each residue.
    parts : list of SequencePart
        Their rows are residues. Those that are kept hold every residue once.
    """
    keys = np.stack([protein, chain, seq_pos])  # (3, N)
    unique, first, residue = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    owner, parts = unique[0], []
    for rows in chain_rows(*unique, gaps=gaps):
        tokens = chain_tokens(rows, aatype[first], gaps=gaps, masked=masked[first])
        what = f"a chain of protein {owner[rows.max()]} of the batch"
        cut = split_windows(len(rows), max_len=max_len, long=long, what=what)
        parts += [SequencePart(rows, w, w.tokens(tokens)) for w in cut]
    return residue.reshape(-1), owner, parts
