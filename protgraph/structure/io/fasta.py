"""Sequences without structure: FASTA files, gzipped or not, to residues that have no coordinates."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.errors import EmptyStructureError, SelectionError, StructureFileError
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER, UNKNOWN, aatype
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["FASTA_SUFFIXES", "FastaRecord", "is_fasta", "load_fasta", "read_fasta"]

FASTA_SUFFIXES = (".fasta", ".fa", ".faa", ".fas")
"""Suffixes by which FASTA files are found in a folder; a file that is named is known by its content."""

GAPS, STOP = "-.", "*"

#: Letter → residue name: the 20 and X, then what IUPAC and the PDB have besides (J is leucine or isoleucine).
_NAMES = dict(zip(ALPHABET, THREE_LETTER, strict=True)) | {
    "B": "ASX",
    "Z": "GLX",
    "J": "XLE",
    "U": "SEC",
    "O": "PYL",
}
_AATYPE = {letter: UNKNOWN if letter in "BZJX" else aatype(name) for letter, name in _NAMES.items()}
_CHAINS = (
    re.compile(r"\|Chains? [A-Za-z0-9]+\[auth ([A-Za-z0-9]+)\]"),  # as the RCSB writes: 4HHB_1|Chains A, C|…
    re.compile(r"\|Chains? ([A-Za-z0-9]+)"),
    re.compile(r"[0-9][A-Za-z0-9]{3}[_:]([A-Za-z0-9]{1,4})(?=\s|$)"),  # 1ubq_A
    re.compile(r"([A-Za-z0-9])(?=\s|$)"),  # A
)


@dataclass(frozen=True)
class FastaRecord:
    """One record of a FASTA file, as it stands there.

    Parameters
    ----------
    path : str
        The file.
    header : str
        The line after ">".
    number, line : int
        Which record it is and the line of its header, from 1.
    lines : tuple of (int, str)
        The lines of the sequence, each with its number.
    """

    path: str
    header: str
    number: int
    line: int
    lines: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """First word of the header; "record3" where the third has none."""
        return next(iter(self.header.split()), f"record{self.number}")

    @property
    def chain(self) -> str:
        """The chain that the header names ("1ubq_A", "A", "…|Chain A|…"); "A" where it names none."""
        searches = (_CHAINS[0].search, _CHAINS[1].search, _CHAINS[2].match, _CHAINS[3].match)
        return next((found[1] for search in searches if (found := search(self.header))), "A")

    @property
    def where(self) -> str:
        """For errors: the file, the record and its line."""
        return f"{self.path}, record {self.name!r} (line {self.line})"

    def residues(self) -> Residues:
        """The protein: residues numbered from 1, without coordinates and atoms.

        Raises
        ------
        EmptyStructureError
            Where the record holds no residue.
        StructureFileError
            Where a character is no residue; it says on which line.
        """
        raw = "".join(text for _, text in self.lines)
        whole = raw.upper()
        letters = whole.rstrip(GAPS + STOP)
        tail = whole[len(letters) :]
        self._check(letters)
        letters = letters.translate(dict.fromkeys(map(ord, GAPS)))
        if not letters:
            raise EmptyStructureError(f"{self.where}: there is no residue in it")
        n, counts = len(letters), Counter(letters)
        report = LossReport(
            gap_letters=sum(map(whole.count, GAPS)),
            stops=tail.count(STOP),
            lower_case=sum(map(str.islower, raw)),
            modified={_NAMES[a]: counts[a] for a in "UO" if counts[a]},
            unknown={_NAMES[a]: counts[a] for a in "XBZJ" if counts[a]},
        )
        return Residues(
            name=self.name,
            chain=np.full(n, self.chain),
            res_id=np.arange(1, n + 1),
            ins_code=np.full(n, ""),
            res_name=np.array([_NAMES[a] for a in letters]),
            aatype=np.array([_AATYPE[a] for a in letters], np.int64),
            pos=np.full((n, 3), np.nan, np.float32),
            backbone=np.full((n, len(BACKBONE), 3), np.nan, np.float32),
            b_factor=np.zeros(n, np.float32),
            seq_pos=np.arange(n),
            atom_pos=np.zeros((0, 3), np.float32),
            atom_name=np.zeros(0, "U4"),
            atom_element=np.zeros(0, "U2"),
            atom_residue=np.zeros(0, np.int64),
            report=report,
        )

    def _check(self, letters: str) -> None:
        """Every letter before the end is a residue or a gap; else the error says where the first is that is not."""
        if set(letters) <= {*_NAMES, *GAPS}:
            return
        for number, text in self.lines:
            for column, letter in enumerate(text, 1):
                if letter.upper() not in _NAMES and letter not in GAPS:
                    what = "a stop before the end" if letter == STOP else "no residue"
                    raise StructureFileError(
                        f"{self.where}: character {column} of its sequence on line {number}, {letter!r}, is {what}.\n"
                        f"Residues are {''.join(sorted(_NAMES))}; gaps are '-' and '.', and '*' may end a sequence."
                    )


def read_fasta(path: str | os.PathLike[str]) -> list[FastaRecord]:
    """The records of a FASTA file; what is in their sequences is not looked at yet.

    Parameters
    ----------
    path : str or PathLike
        UTF-8 text, gzipped or not, with line ends of any system. White space within sequences does not count.

    Raises
    ------
    StructureFileError
        The file is missing, is no FASTA file, or gives two records one name.
    """
    records: list[FastaRecord] = []
    header: tuple[str, int] | None = None
    lines: list[tuple[int, str]] = []

    def close() -> None:
        if header is not None:
            records.append(FastaRecord(str(path), header[0], len(records) + 1, header[1], tuple(lines)))

    for number, line in enumerate(re.split(r"\r\n|\n|\r", _text(path)), 1):
        if line.startswith(">"):
            close()
            header, lines = (line[1:].strip(), number), []
        elif text := "".join(line.split()):
            if header is None:
                raise StructureFileError(f"{path}, line {number}: a FASTA file begins with '>', not with {text[:20]!r}")
            lines.append((number, text))
    close()
    if not records:
        raise StructureFileError(f"{path}: no FASTA record is in it")
    seen: dict[str, FastaRecord] = {}
    for record in records:
        first = seen.setdefault(record.name, record)
        if first is not record:
            raise StructureFileError(
                f"{record.where}: line {first.line} has this name already.\n"
                "The first word of a header is the protein's name; give each its own."
            )
    return records


def load_fasta(path: str | os.PathLike[str], name: str | None = None) -> list[Residues]:
    """The proteins of a FASTA file, one a record, without coordinates.

    Parameters
    ----------
    path : str or PathLike
        The file, gzipped or not.
    name : str, optional
        Only the record of this name.

    Returns
    -------
    list of Residues
        Named by the first word of the header; their reports say what was left out or read as something else.

    Raises
    ------
    StructureFileError, EmptyStructureError
        See :func:`read_fasta` and :meth:`FastaRecord.residues`.
    SelectionError
        No record has the name.

    Examples
    --------
    >>> [protein] = load_fasta(path)  # doctest: +SKIP
    >>> protein.sequence, protein.has_coordinates  # doctest: +SKIP
    ('MKTAYIAKQR', False)
    """
    records = read_fasta(path)
    if name is not None:
        there = [record.name for record in records]
        records = [record for record in records if record.name == name]
        if not records:
            listed = ", ".join(map(repr, there[:20])) + (", …" if len(there) > 20 else "")
            raise SelectionError(f"{path}: no record {name!r}; records here: {listed}")
    return [record.residues() for record in records]


def is_fasta(path: str | os.PathLike[str]) -> bool:
    """Whether a file's first character that is no white space is ">"; False where it cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(2)
        with gzip.open(path) if start == b"\x1f\x8b" else open(path, "rb") as file:
            return file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b">")
    except (OSError, EOFError, zlib.error):
        return False


def _text(path: str | os.PathLike[str]) -> str:
    try:
        content = Path(path).read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as e:
        raise StructureFileError(f"FASTA file {str(path)!r} cannot be read: {e}") from e
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise StructureFileError(f"{path}, line {line}: a FASTA file is UTF-8 text, and this is not") from e
