"""Lines of a PDB file: atom records as a table of columns, the models that they belong to, and values of columns."""

# Not biotite 1.6: 7–10 times the time (2026-11-22). Not biotite ≥ 1.7: requires Python 3.12. Not gemmi 0.7.5: arrays of
# its atoms take longer.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from protgraph.structure.io.decimals import fixed_point

__all__ = ["NUMBERS", "WIDTH", "PDBText", "model_lines", "parse_numbers", "parse_texts"]

WIDTH = 80
"""Columns of a record (wwPDB file format 3.3)."""
NUMBERS = {"x": (30, 38), "y": (38, 46), "z": (46, 54), "occupancy": (54, 60), "B factor": (60, 66), "number": (22, 26)}
"""Columns of the numbers of an atom record, from 0 (wwPDB file format 3.3); "number" is that of the residue."""
_DECIMALS = {"x": 3, "y": 3, "z": 3, "occupancy": 2, "B factor": 2, "number": 0}

_LOWER = np.uint64(0x2020202020202020)  # upper-case letters become lower case
_BLANK = ord(" ")


def _word(text: str) -> tuple[np.uint64, np.uint64]:
    """Return the characters as they begin a line, in lower case, as a number, and the mask of these bytes."""
    size = len(text)
    return np.uint64(int.from_bytes(text.lower().encode(), "little")), np.uint64((1 << (8 * size)) - 1)


_ATOM = _word("ATOM")
_HETATM = _word("HETATM")
_MODEL = _word("MODEL")
_ENDMDL = _word("ENDMDL")
_END = _word("END")
_CELL = _word("CRYST1")
_TER = _word("TER")
_CONECT = _word("CONECT")
_AFTER_WORD = np.isin(np.arange(256), [ord(c) | 0x20 for c in " \t\n*0123456789"])  # no letter, as in ATOMIC


@dataclass(frozen=True, eq=False)
class PDBText:
    """A PDB file as bytes, its lines and its models.

    ``content``: ASCII; lines end with a line feed, and 80 blanks follow the last one. ``start``, ``end``: ``(L,)``
    int64, first byte of each line, and the one after its last. ``is_atom``: ``(L,)`` bool, True for ATOM and HETATM
    records. ``ter``, ``conect``: ``(T,)`` int64, lines of TER and CONECT records. ``models``: first line of each model,
    and the one after its last. ``cell``: first CRYST1 record. ``undeclared``: models without a MODEL record, from 1, in
    a file with several models.
    """

    content: bytes
    start: np.ndarray
    end: np.ndarray
    is_atom: np.ndarray
    ter: np.ndarray
    conect: np.ndarray
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

        # The first 8 characters of each line as one number, in lower case.
        windows = np.lib.stride_tricks.sliding_window_view(data, 8)
        head = windows[start].view("<u8")[:, 0] | _LOWER
        is_atom = _is_record(head, _ATOM) | _is_record(head, _HETATM)
        ter = np.flatnonzero(_is_record(head, _TER))
        conect = np.flatnonzero(head & _CONECT[1] == _CONECT[0])  # the number follows without a blank

        models, declared = _models(_boundaries(head), is_atom)
        undeclared: tuple[int, ...] = ()
        if len(models) > 1:
            undeclared = tuple(number for number, is_declared in enumerate(declared, 1) if not is_declared)

        cell = None
        cells = np.flatnonzero(head & _CELL[1] == _CELL[0])
        if len(cells):
            line = cells[0]
            cell = content[start[line] : end[line]].decode("ascii")
        return cls(content, start, end, is_atom, ter, conect, models, cell, undeclared)

    @property
    def header(self) -> str:
        """Text before the first atom record."""
        if not self.is_atom.any():
            return ""
        first_atom = self.start[self.is_atom.argmax()]
        return self.content[:first_atom].decode("ascii")

    def records(self, model: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the atom records of a model, from 1.

        Returns ``table``: ``(A, 80)`` uint8, ASCII, filled with blanks. ``line``: ``(A,)`` int64, line of each record,
        from 0.
        """
        begin, stop = self.models[model - 1]
        line = begin + np.flatnonzero(self.is_atom[begin:stop])
        return self._columns(line), line

    def connections(self) -> np.ndarray:
        """Return the pairs of atom serial numbers in CONECT records, ``(P, 2)`` int64, as often as they are there."""
        fields = np.ascontiguousarray(self._columns(self.conect)[:, 6:31])  # an atom, and up to four others
        texts = np.char.strip(fields.view("S5"))  # (T, 5)
        is_number = np.char.isdigit(texts)
        numbers = np.where(is_number, texts, b"-1").astype(np.int64)
        pairs = np.stack(np.broadcast_arrays(numbers[:, :1], numbers[:, 1:]), axis=-1).reshape(-1, 2)
        return pairs[(pairs >= 0).all(axis=1)]

    def _columns(self, line: np.ndarray) -> np.ndarray:
        """Return the first 80 columns of lines, ``(A, 80)`` uint8, ASCII, filled with blanks."""
        start = self.start[line]
        size = self.end[line] - start
        data = np.frombuffer(self.content, np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(data, WIDTH)
        table = windows[start]  # (A, 80), a copy

        # Blanks after the end of shorter records.
        shortest = int(size.min(initial=WIDTH))
        if shortest < WIDTH:
            last_columns = table[:, shortest:]
            is_after_end = np.arange(shortest, WIDTH) >= size[:, None]
            last_columns[is_after_end] = _BLANK
        if table.min(initial=_BLANK) < _BLANK:
            np.maximum(table, _BLANK, out=table)  # control characters, e.g. tabs
        return table


def _boundaries(head: np.ndarray) -> Iterator[tuple[int, bool]]:
    """Yield the lines that begin (True) or end (False) a model, from the first characters of each line ``(L,)``."""
    begins_alike = (head & _MODEL[1] == _MODEL[0]) | (head & _END[1] == _END[0])  # few lines of a file
    line = np.flatnonzero(begins_alike)
    head = head[line]
    begins = _is_record(head, _MODEL)
    ends = _is_record(head, _ENDMDL) | _is_record(head, _END)
    is_boundary = begins | ends
    yield from zip(line[is_boundary].tolist(), begins[is_boundary].tolist(), strict=True)


def _is_record(head: np.ndarray, word: tuple[np.uint64, np.uint64]) -> np.ndarray:
    """Return True for lines that begin with a word, ``(L,)`` bool; the next character is blank, a digit or "*"."""
    name, mask = word
    size = np.uint64(int(mask).bit_length())
    line = np.flatnonzero(head & mask == name)
    next_character = (head[line] >> size) & np.uint64(0xFF)
    is_record = np.zeros(len(head), bool)
    is_record[line] = _AFTER_WORD[next_character.astype(np.intp)]
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


def parse_numbers(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parse the numbers of atom records that have the standard form: blanks, an optional minus, and all digits.

    ``table``: ``(A, 80)`` uint8, ASCII. Returns ``values``: ``(6, A)`` float64 in the order of :data:`NUMBERS`;
    undefined where not valid. ``valid``: ``(6, A)`` bool, False for any other form, e.g. blank, hybrid-36, NaN, or with
    other decimals.
    """
    chars = np.ascontiguousarray(table.T)  # (80, A)
    shape = (len(NUMBERS), len(table))
    values = np.empty(shape)
    valid = np.empty(shape, bool)
    for row, (name, (begin, end)) in enumerate(NUMBERS.items()):
        values[row], valid[row] = fixed_point(chars[begin:end], _DECIMALS[name])
    return values, valid


def parse_texts(field: np.ndarray, width: int) -> np.ndarray:
    """Convert characters to strings without surrounding blanks.

    ``field``: ``(A, w)`` uint8, ASCII, w ≤ 4. Returns ``(A,)`` str of this length.
    """
    points = np.zeros((len(field), width), np.uint32)  # Unicode code points
    if field.shape[1] == 1:
        points[:, 0] = field[:, 0] * (field[:, 0] != ord(" "))
        return points.view(f"U{width}")[:, 0]

    # The characters of a field as one number, the first one in the lowest byte.
    packed = np.zeros((len(field), 4), np.uint8)
    packed[:, : field.shape[1]] = field
    code = packed.view("<u4")[:, 0]

    # Blanks before the text: the other characters move forward.
    for _ in range(field.shape[1]):
        begins_blank = code & 0xFF == ord(" ")
        if not begins_blank.any():
            break
        code = np.where(begins_blank, code >> 8, code)

    # Blanks after the text become 0.
    for shift in range(8 * (field.shape[1] - 1), 0, -8):
        ends_blank = code >> shift == ord(" ")
        without_last = code & ((1 << shift) - 1)
        code = np.where(ends_blank, without_last, code)
    points[:, :4] = code.view(np.uint8).reshape(-1, 4)
    return points.view(f"U{width}")[:, 0]
