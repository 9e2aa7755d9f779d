"""Lines of a PDB file: atom records as a table of columns, and the models that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["WIDTH", "PDBText", "model_lines"]

WIDTH = 80
"""Columns of a record (wwPDB file format 3.3)."""

_LOWER = np.uint64(0x2020202020202020)  # upper-case letters become lower case
_BLANK = ord(" ")


def _word(text: str) -> tuple[np.uint64, np.uint64]:
    """Return the characters as they begin a line, in lower case, as a number, and the mask of these bytes."""
    size = len(text)
    return np.uint64(int.from_bytes(text.lower().encode(), "little")), np.uint64((1 << (8 * size)) - 1)


_ATOM, _HETATM, _MODEL, _ENDMDL, _END, _CELL, _TER = map(
    _word, ("ATOM", "HETATM", "MODEL", "ENDMDL", "END", "CRYST1", "TER")
)
_AFTER_WORD = np.isin(np.arange(256), [ord(c) | 0x20 for c in " \t\n*0123456789"])  # no letter, as in ATOMIC


@dataclass(frozen=True, eq=False)
class PDBText:
    """A PDB file as bytes, its lines and its models.

    Parameters
    ----------
    content : bytes
        ASCII; lines end with a line feed, and 80 blanks follow the last one.
    start, end : ndarray
        ``(L,)`` int64, first byte of each line, and the one after its last.
    is_atom : ndarray
        ``(L,)`` bool, True for ATOM and HETATM records.
    ter : ndarray
        ``(T,)`` int64, lines of TER records.
    models : tuple of tuple of int
        First line of each model, and the one after its last.
    cell : str, optional
        First CRYST1 record.
    undeclared : tuple of int
        Models without a MODEL record, from 1, in a file with several models.
    """

    content: bytes
    start: np.ndarray
    end: np.ndarray
    is_atom: np.ndarray
    ter: np.ndarray
    models: tuple[tuple[int, int], ...]
    cell: str | None
    undeclared: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> PDBText:
        """Split text into lines and models.

        Other characters than ASCII become "?". Records are recognized in upper and lower case; a longer word, e.g.
        "atom_pair_constraint" in the scores that Rosetta appends, is none.
        """
        content = text.encode("ascii", "replace")
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        content += b"\n" + b" " * WIDTH
        data = np.frombuffer(content, np.uint8)
        end = np.flatnonzero(data == ord("\n"))
        start = np.concatenate([[0], end[:-1] + 1])
        head = np.lib.stride_tricks.sliding_window_view(data, 8)[start].view("<u8")[:, 0] | _LOWER
        is_atom = _is_record(head, _ATOM) | _is_record(head, _HETATM)
        models, declared = _models(_boundaries(head), is_atom)
        undeclared = tuple(n for n, is_declared in enumerate(declared, 1) if not is_declared)
        cells = np.flatnonzero(head & _CELL[1] == _CELL[0])[:1].tolist()
        cell = content[start[cells[0]] : end[cells[0]]].decode("ascii") if cells else None
        ter = np.flatnonzero(_is_record(head, _TER))
        return cls(content, start, end, is_atom, ter, models, cell, undeclared if len(models) > 1 else ())

    @property
    def header(self) -> str:
        """Text before the first atom record."""
        return self.content[: self.start[self.is_atom.argmax()]].decode("ascii") if self.is_atom.any() else ""

    def records(self, model: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the atom records of a model, from 1.

        Returns
        -------
        table : ndarray
            ``(A, 80)`` uint8, ASCII, filled with blanks.
        line : ndarray
            ``(A,)`` int64, line of each record, from 0.
        """
        begin, stop = self.models[model - 1]
        line = begin + np.flatnonzero(self.is_atom[begin:stop])
        start, size = self.start[line], self.end[line] - self.start[line]
        data = np.frombuffer(self.content, np.uint8)
        table = np.lib.stride_tricks.sliding_window_view(data, WIDTH)[start]  # (A, 80), a copy
        shortest = int(size.min(initial=WIDTH))
        if shortest < WIDTH:
            table[:, shortest:][np.arange(shortest, WIDTH) >= size[:, None]] = _BLANK
        if table.min(initial=_BLANK) < _BLANK:
            np.maximum(table, _BLANK, out=table)  # control characters, e.g. tabs
        return table, line


def _boundaries(head: np.ndarray) -> Iterator[tuple[int, bool]]:
    """Yield the lines that begin (True) or end (False) a model, from the first characters of each line ``(L,)``."""
    candidate = np.flatnonzero((head & _MODEL[1] == _MODEL[0]) | (head & _END[1] == _END[0]))
    head = head[candidate]
    begins = _is_record(head, _MODEL)
    keep = begins | _is_record(head, _ENDMDL) | _is_record(head, _END)
    yield from zip(candidate[keep].tolist(), begins[keep].tolist(), strict=True)


def _is_record(head: np.ndarray, word: tuple[np.uint64, np.uint64]) -> np.ndarray:
    """Return True for lines that begin with a word, ``(L,)`` bool; the next character is blank, a digit or "*"."""
    name, mask = word
    size = np.uint64(int(mask).bit_length())
    found = np.flatnonzero(head & mask == name)
    is_record = np.zeros(len(head), bool)
    is_record[found] = _AFTER_WORD[(head[found] >> size & np.uint64(0xFF)).astype(np.intp)]
    return is_record


def _models(
    boundaries: Iterable[tuple[int, bool]], is_atom: np.ndarray
) -> tuple[tuple[tuple[int, int], ...], list[bool]]:
    """Return the lines of each model, and whether each has a MODEL record.

    MODEL begins a model; MODEL, ENDMDL and END end one. Atom records outside of these are a model too. A word "model"
    after the last atom record, e.g. in scores, begins none unless ENDMDL or END follows.
    """
    models: list[tuple[int, int]] = []
    declared: list[bool] = []
    begin, is_open = 0, False
    for line, begins in (*boundaries, (len(is_atom), True)):
        stop = line if begins else line + 1
        has_atoms = is_atom[begin:stop].any()
        is_last = line == len(is_atom)
        if has_atoms or (is_open and not is_last):
            models.append((begin, stop))
            declared.append(is_open)
        begin, is_open = stop, begins
    return tuple(models), declared


def model_lines(text: str) -> tuple[list[str], tuple[tuple[int, int], ...]]:
    """Return the lines of a PDB file as text, and the range of lines of each model."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines, PDBText.of(text).models
