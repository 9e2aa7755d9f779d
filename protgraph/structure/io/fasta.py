"""Read FASTA files, gzipped or not, as residues without coordinates."""

# Not biotite's FastaFile: keeps the last of two records of one name, no line numbers (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from protgraph.argument_types import check_arguments
from protgraph.errors import EmptyStructureError, SelectionError, StructureFileError, list_first
from protgraph.structure.io.sniff import FileContent, read_file
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER, UNKNOWN, aatype
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["FASTA_SUFFIXES", "FastaRecord", "load_fasta", "read_fasta"]

FASTA_SUFFIXES = (".fasta", ".fa", ".faa", ".fas")
"""Suffixes of FASTA files in a folder; the format of a named file is detected from its content."""

_GAPS, _STOP = "-.", "*"

#: Letter → residue name: the 20 amino acids and X, then further letters of IUPAC (J: leucine or isoleucine).
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
    """One record of a FASTA file, not validated.

    ``path``: the file. ``header``: the line after ">". ``number``, ``line``: number of the record and line of its
    header, from 1. ``lines``: line number and text of each sequence line.
    """

    path: str
    header: str
    number: int
    line: int
    lines: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """First word of the header; "record3" for the third record if its header is empty."""
        return next(iter(self.header.split()), f"record{self.number}")

    @property
    def chain(self) -> str:
        """Chain id in the header ("1ubq_A", "A", "…|Chain A|…"); "A" without one."""
        searches = (_CHAINS[0].search, _CHAINS[1].search, _CHAINS[2].match, _CHAINS[3].match)
        return next((match[1] for search in searches if (match := search(self.header))), "A")

    @property
    def where(self) -> str:
        """File, record and line, for error messages."""
        return f"{self.path}, record {self.name!r} (line {self.line})"

    def residues(self) -> Residues:
        """Return the residues, numbered from 1, without coordinates and atoms.

        Raises :class:`EmptyStructureError` if the record has no residue. Raises :class:`StructureFileError` if a
        character is not a residue; the message has its line and column.
        """
        raw = "".join(text for _, text in self.lines)
        upper_case = raw.upper()
        letters = upper_case.rstrip(_GAPS + _STOP)
        tail = upper_case[len(letters) :]
        self._check(letters)
        letters = letters.translate(dict.fromkeys(map(ord, _GAPS)))
        if not letters:
            raise EmptyStructureError(f"{self.where}: the sequence is empty")
        n, counts = len(letters), Counter(letters)
        report = LossReport(
            gap_letters=sum(map(upper_case.count, _GAPS)),
            stops=tail.count(_STOP),
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
        """Raise for the first letter before the end that is neither a residue nor a gap."""
        if set(letters) <= {*_NAMES, *_GAPS}:
            return
        for number, text in self.lines:
            for column, letter in enumerate(text, 1):
                if letter.upper() not in _NAMES and letter not in _GAPS:
                    problem = "a stop before the end" if letter == _STOP else "not a residue"
                    raise StructureFileError(
                        f"{self.where}: character {column} of the sequence on line {number} is {problem}: {letter!r}.\n"
                        f"Allowed are {''.join(sorted(_NAMES))}, the gaps '-' and '.', and '*' at the end."
                    )


def read_fasta(file: str | os.PathLike[str] | FileContent) -> list[FastaRecord]:
    """Read the records of a FASTA file without validating their sequences.

    ``file``: the file or its content: UTF-8 text, gzipped or not, with any line ends. White space in sequences is
    ignored. Raises :class:`StructureFileError` if the file is missing, is not FASTA, or has two records of one name.
    """
    path, text = _text(file)
    records: list[FastaRecord] = []
    header: tuple[str, int] | None = None
    lines: list[tuple[int, str]] = []

    def close() -> None:
        if header is not None:
            records.append(FastaRecord(path, header[0], len(records) + 1, header[1], tuple(lines)))

    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if line.startswith(">"):
            close()
            header, lines = (line[1:].strip(), number), []
        elif letters := "".join(line.split()):
            if header is None:
                raise StructureFileError(f"{path}, line {number}: text before the first '>': {letters[:20]!r}")
            lines.append((number, letters))
    close()
    if not records:
        raise StructureFileError(f"{path}: no FASTA records")
    seen: dict[str, FastaRecord] = {}
    for record in records:
        first = seen.setdefault(record.name, record)
        if first is not record:
            raise StructureFileError(
                f"{record.where}: line {first.line} has the same name.\n"
                "The first word of a header is the protein's name and must be unique in the file."
            )
    return records


@check_arguments("path", "name")
def load_fasta(path: str | os.PathLike[str], name: str | None = None) -> list[Residues]:
    r"""Read the proteins of a FASTA file, one per record, without coordinates.

    Parameters
    ----------
    path : str or PathLike
        The file, gzipped or not.
    name : str, optional
        Read only the record of this name.

    Returns
    -------
    list of Residues
        Named by the first word of the header; their reports count what was left out or replaced.

    Raises
    ------
    StructureFileError, EmptyStructureError
        See :func:`read_fasta` and :meth:`FastaRecord.residues`.
    SelectionError
        The file has no record of this name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.fasta"
    >>> _ = path.write_text(">protein_a\nMKTAYIAKQR\n")
    >>> [protein] = load_fasta(path)
    >>> protein.name, protein.sequence, protein.has_coordinates
    ('protein_a', 'MKTAYIAKQR', False)
    """
    records = read_fasta(path)
    if name is not None:
        names = [repr(record.name) for record in records]
        records = [record for record in records if record.name == name]
        if not records:
            raise SelectionError(f"{path}: no record {name!r}. The file has {list_first(names, 20)}.")
    return [record.residues() for record in records]


def _text(file: str | os.PathLike[str] | FileContent) -> tuple[str, str]:
    content = read_file(file)
    try:
        return content.path, content.data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.data.count(b"\n", 0, e.start) + 1
        raise StructureFileError(f"{content.path}, line {line}: not UTF-8 text") from e
