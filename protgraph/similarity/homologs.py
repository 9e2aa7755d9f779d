"""Find all pairs of homologous sequences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from protgraph.errors import OptionError
from protgraph.similarity.block_search import Block, run_blocks
from protgraph.similarity.mmseqs_search import find_mmseqs, search_with_mmseqs
from protgraph.similarity.pair_alignment import ALIGNERS, PairAligner, default_aligner, standard_letters
from protgraph.similarity.rule import HomologyRule, evalue, least_score

__all__ = ["ENGINES", "Homologs", "find_homologs"]

ENGINES = (*ALIGNERS, "mmseqs")
"""Programs that find homologs: aligners of all pairs, and MMseqs2."""

_CELLS = 2_000_000_000  # of dynamic programming in a block: 2 s with parasail
_EXHAUSTIVE = 5_000  # most sequences of which all pairs are aligned if MMseqs2 is installed
_FORMAT = 1  # of the files of finished blocks


@dataclass(frozen=True, eq=False)
class Homologs:
    """Pairs of homologous sequences.

    Parameters
    ----------
    number : int
        Number of sequences.
    first, second : ndarray
        ``(P,)`` int64, the two sequences of each pair, first < second, sorted.
    identity, first_coverage, second_coverage, evalue : ndarray
        ``(P,)`` float64; see :class:`~protgraph.similarity.HomologyRule`.
    aligned : int
        Pairs of different sequences that were aligned; with MMseqs2, pairs that were prefiltered.
    engine : str
    """

    number: int
    first: np.ndarray
    second: np.ndarray
    identity: np.ndarray
    first_coverage: np.ndarray
    second_coverage: np.ndarray
    evalue: np.ndarray
    aligned: int = 0
    engine: str = ""

    def __len__(self) -> int:
        return len(self.first)

    def select(self, rows: np.ndarray) -> Homologs:
        """Return some pairs, by a mask ``(P,)`` or by indices ``(R,)``."""
        names = ("first", "second", "identity", "first_coverage", "second_coverage", "evalue")
        return Homologs(self.number, *(getattr(self, name)[rows] for name in names), self.aligned, self.engine)


def find_homologs(
    sequences: Sequence[str],
    rule: HomologyRule | None = None,
    *,
    groups: Sequence[int] | None = None,
    workers: int = 1,
    engine: str | None = None,
    cache: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Homologs:
    """Find all pairs of homologous sequences.

    With an aligner the search is exhaustive: no pair is prefiltered. Equal sequences are aligned once. Pairs whose
    lengths exclude the rule are not aligned. The time grows with the square of the number of sequences: about 10 µs
    per pair of 250 residues and processor with parasail. MMseqs2 prefilters pairs.

    Parameters
    ----------
    sequences : sequence of str
        One-letter codes; a sequence of unknown types only has no homolog.
    rule : HomologyRule, optional
    groups : sequence of int, optional
        Group of each sequence, e.g. its split; pairs of one group are left out.
    workers : int
        Number of processes.
    engine : {"parasail", "biotite", "mmseqs"}, optional
        Default: MMseqs2 for more than 5,000 different sequences if it is installed, else parasail if it is installed.
    cache : Path, optional
        Folder for finished blocks, with which an interrupted search continues.
    report : callable, optional
        Called with the numbers of finished and of all pairs.

    Raises
    ------
    OptionError
        The engine is not known.
    ExternalProgramError
        MMseqs2 fails.

    Examples
    --------
    >>> found = find_homologs(["MKTAYIAKQRQISFVKSHFSRQLEERLG", "MKTAYIAKQRQISFVKSHFSRQLEERLG", "GGGGSGGGGS"])
    >>> found.first.tolist(), found.second.tolist(), found.identity.tolist()
    ([0], [1], [1.0])
    """
    rule = rule or HomologyRule()
    if engine not in (None, *ENGINES):
        raise OptionError(f"engine: {engine!r} is not known. Allowed: {', '.join(ENGINES)}.")
    sequences = [standard_letters(s) for s in sequences]
    unique = sorted({s for s in sequences if set(s) - {"X"}}, key=lambda s: (len(s), s))
    engine = engine or ("mmseqs" if len(unique) > _EXHAUSTIVE and find_mmseqs() else default_aligner())
    number = {s: i for i, s in enumerate(unique)}
    members: list[list[int]] = [[] for _ in unique]
    for i, s in enumerate(sequences):
        if s in number:
            members[number[s]].append(i)
    own = None if groups is None else _single_groups(members, np.asarray(groups))
    search = _Search(unique, rule, sum(map(len, sequences)), own, engine, workers)
    blocks, total = search.blocks()
    folder = None if cache is None else cache / "homologs" / search.digest()
    rows, done = [], 0
    for block, found in run_blocks(search, blocks, workers, folder):
        rows.append(found)
        done += search.pairs(block)
        if report is not None:
            report(done, total)
    return _expand(len(sequences), np.concatenate([np.zeros((0, 6)), *rows]), members, groups, search, total)


def _single_groups(members: list[list[int]], groups: np.ndarray) -> np.ndarray:
    """Return the group of each unique sequence, −1 if it is in several."""
    found = [set(groups[own].tolist()) for own in members]
    return np.array([own.pop() if len(own) == 1 else -1 for own in found], np.int64)


class _Search:
    """Unique sequences in order of length, with what is aligned with what."""

    def __init__(
        self,
        sequences: list[str],
        rule: HomologyRule,
        residues: int,
        groups: np.ndarray | None,
        engine: str,
        threads: int,
    ) -> None:
        self.sequences, self.rule, self.residues, self.groups = sequences, rule, residues, groups
        self.engine, self.threads = engine, threads
        self.lengths = np.array([len(s) for s in sequences], np.int64)

    def digest(self) -> str:
        """Return a name for the search: everything that its result depends on."""
        groups = None if self.groups is None else self.groups.tolist()
        content = [_FORMAT, self.sequences, asdict(self.rule), self.residues, groups, self.engine]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]

    def last(self) -> np.ndarray:
        """Return the end of the window of each sequence, which begins after it and has all its homologs.

        The identical residues of an alignment are at most those of the shorter sequence, m. Its columns, gaps included,
        are at least the covered residues of the longer one, ``coverage * n``. So ``m >= identity * coverage * n``.
        """
        n, least = len(self.sequences), self.rule.identity * self.rule.coverage
        if self.rule.coverage_of != "both" or least == 0:
            return np.full(n, n)
        return np.searchsorted(self.lengths, self.lengths / least + 1e-9, side="right")

    def blocks(self) -> tuple[list[Block], int]:
        """Return blocks of about equal work, and the number of pairs; MMseqs2 does all work in one block."""
        last, summed = self.last(), np.concatenate([[0], np.cumsum(self.lengths)])
        index = np.arange(len(self.sequences))
        cells = np.cumsum(self.lengths * (summed[last] - summed[index + 1]))
        blocks, start = [], 0
        while start < len(index) and self.engine != "mmseqs":
            before = cells[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(cells, before + _CELLS, side="right")))
            blocks.append(Block(start, stop))
            start = stop
        if self.engine == "mmseqs" and len(index) > 1:
            blocks = [Block(0, len(index))]
        return blocks, sum(map(self.pairs, blocks))

    def pairs(self, block: Block) -> int:
        """Return the number of pairs of a block, without those of one group."""
        last, number = self.last(), 0
        for i in range(block.start, block.stop):
            number += int(last[i]) - i - 1
            if self.groups is not None and self.groups[i] >= 0:
                number -= int((self.groups[i + 1 : last[i]] == self.groups[i]).sum())
        return number

    def run(self, block: Block) -> np.ndarray:
        """Return the homologs of a block, ``(P, 6)``: two numbers, identity, two coverages, E."""
        if self.engine == "mmseqs":
            table = search_with_mmseqs(self.sequences, self.rule, self.threads)
        else:
            table = self.align(block)
        pairs = table[:, :2].astype(np.int64)
        keep = self.rule.holds(table[:, 2], table[:, 3], table[:, 4], self.lengths[pairs])
        if self.groups is not None:
            first, second = self.groups[pairs].T
            keep &= (first != second) | (first < 0)
        return table[keep]

    def align(self, block: Block) -> np.ndarray:
        """Align the pairs of a block; return the significant alignments as in :meth:`run`."""
        rows, last = [], self.last()
        for i in range(block.start, block.stop):
            aligner = PairAligner(self.engine, self.sequences[i])
            least = least_score(self.lengths[i + 1 : last[i]], self.residues, self.rule.max_evalue)
            for j, score in zip(range(i + 1, int(last[i])), least.tolist(), strict=True):
                if self.groups is not None and self.groups[i] == self.groups[j] >= 0:
                    continue
                found = aligner.align(self.sequences[j], score)
                if found is None:
                    continue
                covered = found.first / self.lengths[i], found.second / self.lengths[j]
                e = evalue(found.score, self.lengths[j], self.residues)
                rows.append((i, j, found.matches / found.columns, *covered, float(e)))
        return np.array(rows, np.float64).reshape(-1, 6)


def _expand(
    n: int, table: np.ndarray, members: list[list[int]], groups: Sequence[int] | None, search: _Search, total: int
) -> Homologs:
    """Return the pairs of all sequences from those of the unique ones."""
    rows: list[tuple[float, ...]] = []
    for i, j, *values in table.tolist():
        rows += [
            (a, b, *values) if a < b else (b, a, values[0], values[2], values[1], values[3])
            for a in members[int(i)]
            for b in members[int(j)]
        ]
    aligner = search.engine if search.engine in ALIGNERS else default_aligner()
    for sequence, own in zip(search.sequences, members, strict=True):
        if len(own) > 1 and (same := PairAligner(aligner, sequence).align(sequence, 0)) is not None:
            e = float(evalue(same.score, len(sequence), search.residues))
            rows += [(a, b, 1.0, 1.0, 1.0, e) for k, a in enumerate(own) for b in own[k + 1 :]]
    if groups is not None:
        rows = [row for row in rows if groups[int(row[0])] != groups[int(row[1])]]
    found = np.array(sorted(rows), np.float64).reshape(-1, 6)
    first, second = found[:, :2].T.astype(np.int64)
    return Homologs(n, first, second, *found[:, 2:].T, total, search.engine)
