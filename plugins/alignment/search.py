"""Alignments by a search of MMseqs2 in the sequences of a FASTA file, kept in the cache as a3m."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from protgraph_plugins.alignment.matching import letters_of
from protgraph_plugins.similarity import run_mmseqs

from protgraph.errors import AlignmentError, ExternalProgramError
from protgraph.file_io import atomic_write
from protgraph.structure.io import cache_dir

__all__ = ["a3m_rows", "search_alignments"]

_COLUMNS = ("query", "target", "qstart", "qaln", "taln")
_OPTIONS = ("-a", "-s", "7.5", "-e", "1e-3", "--max-seqs", "10000", "-v", "1")


def search_alignments(chains: Iterable[bytes], database: str) -> list[str]:
    """Search chains in a FASTA file; return an a3m file for each different one, from the cache if it is there.

    Parameters
    ----------
    chains : iterable of bytes
        Residue types of each chain.
    database : str
        FASTA file.

    Raises
    ------
    AlignmentError
        The file cannot be read.
    MissingExtraError
        MMseqs2 is not installed.
    ExternalProgramError
        MMseqs2 fails.
    """
    try:
        stamp = os.stat(database)
    except OSError as e:
        raise AlignmentError(f"--search {database}: {e.strerror}", path=database) from e
    folder = cache_dir(None) / "alignments"
    files: dict[str, Path] = {}
    for letters in dict.fromkeys(map(letters_of, chains)):
        key = f"{os.path.abspath(database)}\n{stamp.st_size}\n{stamp.st_mtime_ns}\n{letters}"
        files[letters] = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.a3m"
    missing = [letters for letters, file in files.items() if not file.exists()]
    if missing:
        hits = _search(missing, database)
        for number, letters in enumerate(missing):
            with atomic_write(files[letters]) as temporary:
                temporary.write_text(a3m_rows(letters, hits.get(str(number), [])), encoding="ascii")
    return [str(file) for file in files.values()]


def _search(queries: list[str], database: str) -> dict[str, list[list[str]]]:
    """Return the rows of the result table of MMseqs2 by query, whose names are their numbers."""
    with TemporaryDirectory(prefix="protgraph-mmseqs-") as name:
        folder = Path(name)
        fasta, result = folder / "queries.fasta", folder / "result.tsv"
        fasta.write_text("".join(f">{i}\n{letters}\n" for i, letters in enumerate(queries)), encoding="ascii")
        files = [str(fasta), database, str(result), str(folder / "work")]
        run_mmseqs(["easy-search", *files, *_OPTIONS, "--format-output", ",".join(_COLUMNS)])
        text = result.read_text(encoding="utf-8") if result.exists() else ""
    hits: dict[str, list[list[str]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        values = line.split("\t")
        if len(values) != len(_COLUMNS):
            raise ExternalProgramError(
                f"output of mmseqs: line {number} is {line!r}. Expected: {', '.join(_COLUMNS)}, separated by tabs."
            )
        hits.setdefault(values[0], []).append(values)
    return hits


def a3m_rows(query: str, hits: Iterable[list[str]]) -> str:
    """Return the text of an a3m file of a query and its hits: target, first letter, and both aligned sequences.

    Examples
    --------
    >>> print(a3m_rows("MKTAY", [["0", "a", "2", "K-TA", "KWSA"]]), end="")
    >query
    MKTAY
    >a
    -KwSA-
    """
    rows = [f">query\n{query}\n"]
    for _, target, start, aligned_query, aligned_target in hits:
        first = int(start) - 1
        letters = [
            theirs.lower().replace("-", "") if ours == "-" else theirs
            for ours, theirs in zip(aligned_query, aligned_target, strict=True)
        ]
        end = first + len(aligned_query.replace("-", ""))
        rows.append(f">{target}\n{'-' * first}{''.join(letters)}{'-' * (len(query) - end)}\n")
    return "".join(rows)
