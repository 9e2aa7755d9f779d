"""Find the alignment of a protein in a file or a folder by the sequences of its chains."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from protgraph_plugins.alignment.formats import AlignedSequences, read_alignment, read_queries
from protgraph_plugins.alignment.matching import ChainMatch, match_chain, show_difference
from scipy.sparse import csr_array, vstack

from protgraph.errors import AlignmentError, list_first
from protgraph.structure import GAP, Alignment, Residues
from protgraph.structure.residues import residue_ids

__all__ = ["SUFFIXES", "align_protein", "alignment_files", "chain_types"]

SUFFIXES = (".a3m", ".a2m", ".afa", ".sto", ".stk", ".stockholm", ".aln", ".clustal", ".clw")
"""Suffixes of alignments in a folder, each also with .gz. The format is detected from the content."""

_PARTS_OF_COLABFOLD = "_env"  # folder of the alignments that NAME.a3m beside it joins
_WORD = 4  # letters of the words by which alignments of a folder are preselected
_SHARED = 0.25  # words of a chain that a candidate has
_CANDIDATES = 20
_SHOWN = 5


@dataclass(frozen=True)
class _Query:
    """First sequence of an alignment file, or of a chain in a file of a complex."""

    path: str
    start: int  # column
    types: bytes


@dataclass(frozen=True, eq=False)
class _AlignedChain:
    """Rows of a chain in the protein, and their columns in a file."""

    rows: np.ndarray  # (L,) residues of the protein
    columns: np.ndarray  # (L,) columns of the file, -1 for none


def alignment_files(path: str) -> list[str]:
    """Return an alignment file, or the alignments of a folder and its subfolders, sorted.

    Raises
    ------
    AlignmentError
        The path does not exist, or the folder has no alignment.
    """
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise AlignmentError(f"alignment {path!r}: there is no such file or folder", path=path)
    files: list[str] = []
    for place, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".") and not name.endswith(_PARTS_OF_COLABFOLD)]
        files += [os.path.join(place, name) for name in names if _is_alignment(name)]
    if not files:
        raise AlignmentError(f"alignment folder {path!r} has no file {', '.join(SUFFIXES)}, maybe .gz", path=path)
    return sorted(files)


def _is_alignment(name: str) -> bool:
    return not name.startswith(".") and name.lower().removesuffix(".gz").endswith(SUFFIXES)


def chain_types(residues: Residues) -> dict[str, bytes]:
    """Return the residue types of each chain."""
    types = residues.aatype.astype(np.uint8)
    return {name: types[residues.chain == name].tobytes() for name in residues.chain_names}


def align_protein(residues: Residues, files: Sequence[str]) -> Alignment:
    """Return the alignment of a protein.

    A row of a file is one row of the protein, in all chains whose columns the file has: copies of a chain and the
    chains of a complex stay paired. Rows of different files are different rows, with gaps in the other chains.

    Parameters
    ----------
    residues : Residues
        The protein; chains are found by their sequences.
    files : sequence of str
        Alignment files.

    Raises
    ------
    AlignmentError
        A chain has no alignment, or several; or a file cannot be read.
    """
    queries = _queries(tuple((file, os.stat(file).st_mtime_ns) for file in files))
    chains: dict[str, list[_AlignedChain]] = {}
    notes: list[str] = []
    matched: dict[bytes, tuple[_Query, ChainMatch]] = {}  # copies of a chain are matched once
    for name, types in chain_types(residues).items():
        if types not in matched:
            matched[types] = _find(types, queries, residues, name)
        query, match = matched[types]
        rows = np.flatnonzero(residues.chain == name)
        columns = np.where(match.columns < 0, -1, match.columns + query.start)
        chains.setdefault(query.path, []).append(_AlignedChain(rows, columns))
        if len(match.substituted):
            ids = np.array(residue_ids(residues.chain, residues.res_id, residues.ins_code))[rows[match.substituted]]
            verb = "differs" if len(ids) == 1 else "differ"
            notes.append(f"{list_first(ids.tolist(), _SHOWN)} {verb} from the first sequence of {query.path}")
    return _join(residues, chains, notes)


@lru_cache(maxsize=4)
def _queries(files: tuple[tuple[str, int], ...]) -> list[_Query]:
    """Return the first sequences of files with these times of change."""
    queries = []
    for path, _ in files:
        start = 0
        for types in read_queries(path):
            queries.append(_Query(path, start, types))
            start += len(types)
    return queries


def _find(types: bytes, queries: Sequence[_Query], residues: Residues, chain: str) -> tuple[_Query, ChainMatch]:
    """Return the alignment of a chain; of several equally good ones, that of the file named like the protein."""
    best = _best_matches(types, queries)
    if not best:
        _raise_mismatch(types, queries, residues, chain)
    names = {residues.name.lower(), f"{residues.name}_{chain}".lower()}
    named = [(query, match) for query, match in best if _stem(query.path).lower() in names]
    preferred = named if named else best
    paths = {query.path for query, _ in preferred}
    if len(paths) > 1:
        files = list_first([query.path for query, _ in best], _SHOWN)
        raise AlignmentError(
            f"{residues.name}: chain {chain!r} has several alignments: {files}.\nKeep one of them, or give its file."
        )
    return preferred[0]


def _best_matches(types: bytes, queries: Sequence[_Query]) -> list[tuple[_Query, ChainMatch]]:
    """Return the accepted matches of a chain with the fewest residues that differ; none if none is accepted."""
    accepted: list[tuple[_Query, ChainMatch]] = []
    for query in _candidates(types, queries):
        match = match_chain(types, query.types)
        if match.is_accepted:
            accepted.append((query, match))
    fewest = min((_residues_that_differ(match) for _, match in accepted), default=0)
    return [(query, match) for query, match in accepted if _residues_that_differ(match) == fewest]


def _residues_that_differ(match: ChainMatch) -> int:
    return len(match.substituted) + int((match.columns < 0).sum())


def _stem(path: str) -> str:
    return Path(path.lower().removesuffix(".gz")).stem


def _candidates(types: bytes, queries: Sequence[_Query]) -> Iterable[_Query]:
    """Return the sequences that share words with a chain, those that share most first; a single one in any case."""
    if len(queries) == 1:
        return queries
    words = _words(types)
    shared = [len(words & _words(query.types)) for query in queries]
    order = sorted(range(len(queries)), key=lambda i: -shared[i])[:_CANDIDATES]
    return [queries[i] for i in order if shared[i] >= _SHARED * len(words)]


@lru_cache(maxsize=100_000)
def _words(types: bytes) -> frozenset[bytes]:
    return frozenset(types[i : i + _WORD] for i in range(max(1, len(types) - _WORD + 1)))


def _raise_mismatch(types: bytes, queries: Sequence[_Query], residues: Residues, chain: str) -> None:
    """Raise with both sequences at their first difference; of several alignments, with the most similar one."""
    words = _words(types)
    query = max(queries, key=lambda query: len(words & _words(query.types)))
    place, ours, theirs = show_difference(types, query.types)
    closest = "" if len(queries) == 1 else f" None of {len(queries)} alignments is of this chain; this is the closest."
    rows = np.flatnonzero(residues.chain == chain)
    residue = residues.ids[rows[min(place, len(rows) - 1)]]
    raise AlignmentError(
        f"{query.path} is not of chain {chain!r} of {residues.name}; {residue} is the first difference.{closest}\n"
        f"chain      {ours}\n"
        f"alignment  {theirs}",
        path=query.path,
        row=1,
    )


@lru_cache(maxsize=1)
def _read(path: str, _changed: int) -> AlignedSequences:
    return read_alignment(path)


def _join(residues: Residues, chains: dict[str, list[_AlignedChain]], notes: Sequence[str]) -> Alignment:
    """Return the rows of all files; the first row has the residues of the protein."""
    n = len(residues)
    types, deletions = [residues.aatype.astype(np.uint8)[None]], [csr_array((1, n), dtype=np.int32)]
    for path, of_file in chains.items():
        file = _read(path, os.stat(path).st_mtime_ns)
        columns = np.full(n, -1)
        for chain in of_file:
            columns[chain.rows] = chain.columns
        is_aligned = columns >= 0
        block = np.full((len(file.rows) - 1, n), GAP, np.uint8)
        block[:, is_aligned] = file.rows[1:, columns[is_aligned]]
        is_used = (block != GAP).any(1)
        place = np.flatnonzero(is_aligned)
        spread = csr_array((np.ones(len(place), np.int32), (columns[place], place)), shape=(file.rows.shape[1], n))
        types.append(block[is_used])
        deletions.append(csr_array(file.deletions[1:] @ spread)[is_used])
    return Alignment(np.concatenate(types), csr_array(vstack(deletions)), ", ".join(chains), tuple(notes))
