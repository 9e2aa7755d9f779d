"""Read multiple sequence alignments: a3m, a2m, aligned FASTA, Stockholm and Clustal, each also gzipped.

Not biotite (1.6.0, 2026-11-27): ``FastaFile`` keeps the last of two rows of one name, its alignments have an int64 per
letter, eight times the file, and a3m and the rows of a damaged file are not read.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from protgraph.errors import AlignmentError
from protgraph.structure import ALPHABET, GAP

__all__ = ["AlignedSequences", "parse_alignment", "read_alignment", "read_queries"]

_INVALID = 255
_INSERTED = b"abcdefghijklmnopqrstuvwxyz"
_SPACE = b" \t\r\n\v\f\0"
_GAP_LETTERS = b"-._~"
#: Letters besides those of ``ALPHABET``: ambiguous ones, selenocysteine and pyrrolysine, as in FASTA files.
_MORE_LETTERS = {"B": "X", "Z": "X", "J": "X", "U": "C", "O": "K"}
_CLUSTAL = (b"CLUSTAL", b"MUSCLE", b"PROBCONS", b"MSAPROBS")
#: First line of ColabFold: lengths of the chains of a complex, and their numbers of copies.
_COLABFOLD = re.compile(rb"#(\d+(?:,\d+)*)\t\d+(?:,\d+)*\s*")
_NUCLEOTIDES = frozenset(ALPHABET.index(letter) for letter in "ACGTNX")  # U is read as C
_FEWEST = 20  # residues of a query of which all are nucleotides
_SHOWN = 20


def _table(gaps: bytes, *, folds_case: bool) -> bytes:
    """Return the residue type of each byte for ``bytes.translate``."""
    table = bytearray([_INVALID]) * 256
    letters = {letter: letter for letter in ALPHABET} | _MORE_LETTERS
    for letter, standard in letters.items():
        table[ord(letter)] = ALPHABET.index(standard)
        if folds_case:
            table[ord(letter.lower())] = ALPHABET.index(standard)
    for gap in gaps:
        table[gap] = GAP
    return bytes(table)


_A3M = _table(b"-", folds_case=False)
_COLUMNS = _table(_GAP_LETTERS, folds_case=True)


@dataclass(frozen=True, eq=False)
class AlignedSequences:
    """S sequences aligned to the L residues of the first one.

    Parameters
    ----------
    path : str
        The file.
    rows : ndarray
        ``(S, L)`` uint8, residue types or :data:`protgraph.structure.GAP`.
    deletions : csr_array
        ``(S, L)`` int32, inserted residues of each sequence before this column.
    lengths : tuple of int
        Residues of each chain of the first sequence: one number, or several for a complex of ColabFold.
    """

    path: str
    rows: np.ndarray
    deletions: csr_array
    lengths: tuple[int, ...]


class _Record(NamedTuple):
    """One sequence of a file as it is written."""

    name: str
    text: bytes


def read_alignment(path: str) -> AlignedSequences:
    """Read an alignment file; nothing but its residue types is kept.

    Raises
    ------
    AlignmentError
        The file is missing, empty or cut off, or a row is longer or shorter than the first one, or has a letter that is
        not a residue; with the number of the row.
    """
    try:
        with open(path, "rb") as file:
            return _parse(file, path)
    except OSError as e:
        raise AlignmentError(f"{path}: {e.strerror or e}", path=path) from e


def parse_alignment(content: bytes, path: str) -> AlignedSequences:
    """Read an alignment from the decompressed content of a file."""
    return _parse(io.BytesIO(content), path)


def read_queries(path: str) -> list[bytes]:
    """Return the first sequence of a file, as residue types; of a complex, that of each chain.

    Of a3m and FASTA only the beginning is read.
    """
    try:
        with open(path, "rb") as file:
            lines = _lines(file, path)
            header, records = _records(lines, path)
            first = next(iter(records), None)
    except OSError as e:
        raise AlignmentError(f"{path}: {e.strerror or e}", path=path) from e
    if first is None:
        raise AlignmentError(f"{path}: it has no sequences", path=path)
    types = first.text.translate(_COLUMNS, _SPACE).replace(bytes([GAP]), b"")
    lengths = _lengths(header, len(types), path)
    ends = np.cumsum(lengths).tolist()
    return [types[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _parse(file: IO[bytes], path: str) -> AlignedSequences:
    """Read all rows in one pass; rows in columns with lower-case letters are read again."""
    start = file.tell()
    header, records = _records(_lines(file, path), path)
    rows = _Rows(path)
    for record in records:
        rows.add(record)
    if rows.has_columns:
        file.seek(start)
        header, records = _records(_lines(file, path), path)
        rows = _Rows(path, in_columns=True)
        for record in records:
            rows.add(record)
    types, deletions = rows.result()
    is_column = types[0] != GAP
    if not is_column.all():
        types, deletions = _drop_columns(types, deletions, is_column)
    _require_protein(types[0], path)
    return AlignedSequences(path, types, deletions, _lengths(header, types.shape[1], path))


@dataclass
class _Rows:
    """Rows of one file as they are read.

    Parameters
    ----------
    in_columns : bool
        Every letter is a column, of either case; otherwise lower-case letters are insertions, as in a3m.
    """

    path: str
    in_columns: bool = False
    types: bytearray = field(default_factory=bytearray)  # contract: one growing buffer, so that nothing is copied
    columns: int = 0
    number: int = 0
    raw_lengths: set[int] = field(default_factory=set)
    has_insertions: bool = False
    inserted: list[tuple[int, np.ndarray, np.ndarray]] = field(default_factory=list)  # row, columns, counts

    @property
    def has_columns(self) -> bool:
        """True if rows with insertions are equally long as written: aligned FASTA or a2m, in which a gap is a "."."""
        return not self.in_columns and self.has_insertions and len(self.raw_lengths) == 1

    def add(self, record: _Record) -> None:
        """Append a row."""
        self.number += 1
        text = record.text.translate(None, _SPACE)
        types = text.translate(_COLUMNS) if self.in_columns else text.translate(_A3M, _INSERTED + b".")
        self.raw_lengths.add(len(text))
        if len(types) != len(text):
            self.has_insertions = True
            self._add_insertions(text)
        if self.number == 1:
            self.columns = len(types)
        if _INVALID in types:
            self._raise_letter(record, text)
        self.types += types
        if len(types) != self.columns and not self._may_have_columns():
            raise AlignmentError(
                f"{self.path}: row {self.number} ({record.name!r}) has {len(types)} columns, the first row has "
                f"{self.columns}. Allowed: rows of one length; in a3m, insertions are lower-case letters.",
                path=self.path,
                row=self.number,
            )

    def _may_have_columns(self) -> bool:
        return self.has_insertions and len(self.raw_lengths) == 1 and not self.in_columns

    def _add_insertions(self, text: bytes) -> None:
        letters = np.frombuffer(text.replace(b".", b""), np.uint8)
        (aligned,) = (letters < ord("a")).nonzero()
        counts = aligned - np.arange(len(aligned))  # inserted letters in front; those behind the last are left out
        counts[1:] -= counts[:-1].copy()
        (columns,) = counts.nonzero()
        self.inserted.append((self.number - 1, columns, counts[columns]))

    def _raise_letter(self, record: _Record, text: bytes) -> None:
        table = _COLUMNS if self.in_columns else _A3M
        allowed = b"." if self.in_columns else _INSERTED + b"."
        wrong = [column for column, letter in enumerate(text) if table[letter] == _INVALID and letter not in allowed]
        column = wrong[0]
        raise AlignmentError(
            f"{self.path}: row {self.number} ({record.name!r}): letter {column + 1} is "
            f"{chr(text[column])!r}, not a residue. "
            f"Allowed: {ALPHABET}, {', '.join(_MORE_LETTERS)}, '-' and '.'.",
            path=self.path,
            row=self.number,
        )

    def result(self) -> tuple[np.ndarray, csr_array]:
        """Return types ``(S, L)`` and deletions ``(S, L)``."""
        if not self.number:
            raise AlignmentError(f"{self.path}: it has no sequences", path=self.path)
        if not self.columns:
            raise AlignmentError(f"{self.path}: row 1 has no residues", path=self.path, row=1)
        if len(self.types) != self.number * self.columns:
            raise AlignmentError(f"{self.path}: its rows have different lengths", path=self.path)
        types = np.frombuffer(self.types, np.uint8).reshape(self.number, self.columns)
        counts = np.zeros(self.number + 1, np.int64)
        for row, columns, _ in self.inserted:
            counts[row + 1] = len(columns)
        empty = [np.zeros(0, np.int64)]
        indices = np.concatenate([columns for _, columns, _ in self.inserted] or empty).astype(np.int32)
        values = np.concatenate([values for _, _, values in self.inserted] or empty).astype(np.int32)
        return types, csr_array((values, indices, counts.cumsum()), shape=types.shape)


def _drop_columns(types: np.ndarray, deletions: csr_array, is_kept: np.ndarray) -> tuple[np.ndarray, csr_array]:
    """Return the columns that the first row has; residues in the others count as deletions before the next one."""
    following = np.cumsum(is_kept) - is_kept  # (W,) number of the next kept column
    row, column = np.nonzero((types != GAP) & ~is_kept)
    inside = following[column] < is_kept.sum()
    shape = len(types), int(is_kept.sum())
    ones = np.ones(int(inside.sum()), np.int32)
    dropped = csr_array((ones, (row[inside], following[column[inside]])), shape=shape)  # duplicates are added
    total = csr_array(deletions[:, is_kept] + dropped)
    total.sum_duplicates()
    return np.ascontiguousarray(types[:, is_kept]), total


def _lines(file: IO[bytes], path: str) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed."""
    start = file.tell()
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(start)
    number = 0
    try:
        for line in gzip.GzipFile(fileobj=file) if is_gzip else file:
            number += line.startswith(b">")
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        row = max(number, 1)
        raise AlignmentError(
            f"{path}: the gzip stream is damaged or cut off in row {row} ({e})", path=path, row=row
        ) from e


def _records(lines: Iterator[bytes], path: str) -> tuple[bytes, Iterable[_Record]]:
    """Return the first line of a file and its records, by its format."""
    first = next((line for line in lines if line.strip(_SPACE)), b"").removeprefix(b"\xef\xbb\xbf")
    if first.startswith(b"# STOCKHOLM"):
        return first, _stockholm(lines, path)
    if first.upper().startswith(_CLUSTAL):
        return first, _blocks(lines, path)
    if first.startswith((b">", b"#")):
        return first, _fasta(first, lines, path)
    if not first:
        raise AlignmentError(f"{path}: the file is empty", path=path)
    raise AlignmentError(
        f"{path}: not an alignment (it begins {first[:_SHOWN]!r}). Allowed: a3m, aligned FASTA, Stockholm and Clustal, "
        "each also gzipped.",
        path=path,
    )


def _fasta(first: bytes, lines: Iterator[bytes], path: str) -> Iterator[_Record]:
    """Yield the records of a3m and FASTA; lines before the first ">" that begin with "#" are comments."""
    name = _name(first) if first.startswith(b">") else None
    pieces: list[bytes] = []
    for line in lines:
        if line.startswith(b">"):
            if name is not None:
                yield _Record(name, b"".join(pieces))
            name, pieces = _name(line), []
        elif name is not None:
            pieces.append(line)
        elif line.strip(_SPACE) and not line.startswith(b"#"):
            raise AlignmentError(f"{path}: text before the first '>': {line[:_SHOWN]!r}", path=path)
    if name is not None:
        yield _Record(name, b"".join(pieces))


def _name(header: bytes) -> str:
    return next(iter(header[1:].split()), b"").decode("utf-8", "replace")


def _stockholm(lines: Iterator[bytes], path: str) -> Iterable[_Record]:
    """Return the records of the first alignment of a Stockholm file."""
    sequences: dict[bytes, list[bytes]] = {}
    for line in lines:
        if line.startswith(b"//"):
            return _joined(sequences)
        if not line.startswith(b"#") and line.strip(_SPACE):
            name, piece = _name_and_piece(line, path)
            sequences.setdefault(name, []).append(piece)
    raise AlignmentError(f"{path}: the file ends before '//', it is cut off", path=path, row=len(sequences))


def _blocks(lines: Iterator[bytes], path: str) -> Iterable[_Record]:
    """Return the records of a Clustal file; lines that begin with a space mark conserved columns."""
    sequences: dict[bytes, list[bytes]] = {}
    for line in lines:
        if line.strip(_SPACE) and not line[:1].isspace():
            name, piece = _name_and_piece(line, path)
            sequences.setdefault(name, []).append(piece)
    return _joined(sequences)


def _name_and_piece(line: bytes, path: str) -> tuple[bytes, bytes]:
    """Return the name and the letters of "name letters"; Clustal may add the number of residues so far."""
    words = line.split()
    if len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
        raise AlignmentError(f"{path}: line {line[:_SHOWN]!r} is not a name and a sequence", path=path)
    return words[0], words[1]


def _joined(sequences: dict[bytes, list[bytes]]) -> Iterable[_Record]:
    """Return rows of which a lower-case letter is no insertion: all are written in the same columns."""
    for name, pieces in sequences.items():
        text = b"".join(pieces).upper()
        yield _Record(name.decode("utf-8", "replace"), text.translate(bytes.maketrans(b"._~", b"---")))


def _lengths(header: bytes, columns: int, path: str) -> tuple[int, ...]:
    """Return the residues of each chain, as the first line of ColabFold states them; otherwise there is one."""
    match = _COLABFOLD.fullmatch(header)
    if match is None:
        return (columns,)
    lengths = tuple(map(int, match[1].split(b",")))
    if sum(lengths) != columns:
        raise AlignmentError(
            f"{path}: its first line states chains of {', '.join(map(str, lengths))} residues, and the first row has "
            f"{columns} residues.",
            path=path,
            row=1,
        )
    return lengths


def _require_protein(query: np.ndarray, path: str) -> None:
    if len(query) >= _FEWEST and set(query.tolist()) <= _NUCLEOTIDES:
        raise AlignmentError(f"{path}: row 1 has nucleotides only. Give an alignment of proteins.", path=path, row=1)
