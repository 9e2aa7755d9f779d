"""Homologs: when two chains count as homologs, and the search of all pairs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from protgraph_plugins.similarity.local_alignment import ALIGNERS, PROTEIN, default_aligner, local_aligner
from protgraph_plugins.similarity.mmseqs_search import find_mmseqs, search_with_mmseqs
from protgraph_plugins.similarity.pair_search import PairSearch, Rows, cluster_pairs, saved_rows, search_pairs

from protgraph.errors import OptionError

__all__ = ["ENGINES", "Homologs", "HomologyRule", "cluster_homologs", "evalue", "find_homologs", "least_score"]

ENGINES = (*ALIGNERS, "mmseqs")
"""Programs that find homologs: aligners of all pairs, and MMseqs2."""

_LAMBDA, _K = 0.267, 0.041  # of BLOSUM62 with the gap costs of PROTEIN, Altschul et al. 1997
_KNOWN = frozenset("ARNDCQEGHILKMFPSTWYV")
_CELLS = 2_000_000_000  # of dynamic programming in a block: 2 s with parasail
_EXHAUSTIVE = 5_000  # most sequences of which all pairs are aligned if MMseqs2 is installed
_FORMAT = 2  # of the files of finished blocks


@dataclass(frozen=True)
class HomologyRule:
    """Two chains are homologs if their best local alignment meets all of these.

    The alignment is that of Smith and Waterman (1981) with BLOSUM62 and affine gap costs (11 to open, 1 per residue).

    Parameters
    ----------
    identity : float
        Least fraction of columns with two identical residues, of all columns of the alignment, gaps included.
    coverage : float
        Least fraction of the residues of a chain between the first and the last aligned one.
    coverage_of : {"both", "shorter"}
        Chains whose coverage counts: both, or the shorter one, which also finds a single domain of a longer chain.
    max_evalue : float
        Largest number of alignments of this score that are expected by chance in all sequences together.

    Examples
    --------
    >>> HomologyRule(identity=0.3).text
    'identity ≥ 30 % over ≥ 80 % of both chains, E ≤ 0.001'
    """

    identity: float = 0.3
    coverage: float = 0.8
    coverage_of: Literal["both", "shorter"] = "both"
    max_evalue: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("identity", "coverage"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise OptionError(f"{name}: {value:g} is not a fraction. Allowed: 0 to 1.")
        if self.coverage_of not in ("both", "shorter"):
            raise OptionError(f"coverage_of: {self.coverage_of!r} is not known. Allowed: 'both', 'shorter'.")
        if not self.max_evalue > 0:
            raise OptionError(f"max_evalue: {self.max_evalue:g} is not positive.")

    @property
    def text(self) -> str:
        """The rule in a line."""
        chains = "both chains" if self.coverage_of == "both" else "the shorter chain"
        covered = f"≥ {100 * self.coverage:g} % of {chains}"
        return f"identity ≥ {100 * self.identity:g} % over {covered}, E ≤ {self.max_evalue:g}"

    def holds(self, identity: np.ndarray, first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return where identity and coverage suffice.

        Parameters
        ----------
        identity, first, second : ndarray
            ``(P,)`` identity, and coverage of the first and of the second chain.
        lengths : ndarray
            ``(P, 2)`` residues of the two chains.

        Returns
        -------
        ndarray
            ``(P,)`` bool.
        """
        if self.coverage_of == "both":
            covered = np.minimum(first, second)
        else:
            covered = np.where(lengths[:, 0] <= lengths[:, 1], first, second)
        return (identity >= self.identity) & (covered >= self.coverage)

    def last_partners(self, lengths: np.ndarray) -> np.ndarray:
        """Return the end of the window of each chain that has all its longer homologs, ``(N,)``, for sorted lengths.

        The identical residues of an alignment are at most those of the shorter chain, m. Its columns, gaps included,
        are at least the covered residues of the longer one, ``coverage * n``. So ``m >= identity * coverage * n``.
        """
        least = self.identity * self.coverage
        if self.coverage_of != "both" or least == 0:
            return np.full(len(lengths), len(lengths))
        return np.searchsorted(lengths, lengths / least + 1e-9, side="right")


def evalue(score: np.ndarray, length: np.ndarray, residues: int) -> np.ndarray:
    """Compute E = K m n exp(−λ S) (Karlin & Altschul 1990), m the length of the longer chain, n all residues.

    ``score``, ``length`` and the result have the same shape, e.g. ``(P,)``.
    """
    return _K * np.asarray(length, np.float64) * residues * np.exp(-_LAMBDA * np.asarray(score, np.float64))


def least_score(length: np.ndarray, residues: int, max_evalue: float) -> np.ndarray:
    """Return the least whole scores ``(P,)`` int64 for ``length (P,)`` with :func:`evalue` at most ``max_evalue``."""
    return np.ceil(np.log(_K * np.asarray(length, np.float64) * residues / max_evalue) / _LAMBDA).astype(np.int64)


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
        ``(P,)`` float64; see :class:`HomologyRule`.
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


def cluster_homologs(homologs: Homologs) -> np.ndarray:
    """Return the cluster of each sequence, ``(N,)`` int64: sequences that are linked by homologs, also through others.

    See :func:`cluster_pairs`.
    """
    return cluster_pairs(homologs.number, homologs.first, homologs.second)


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
    >>> homologs = find_homologs(["MKTAYIAKQRQISFVKSHFSRQLEERLG", "MKTAYIAKQRQISFVKSHFSRQLEERLG", "GGGGSGGGGS"])
    >>> homologs.first.tolist(), homologs.second.tolist(), homologs.identity.tolist()
    ([0], [1], [1.0])
    """
    rule = rule or HomologyRule()
    if engine not in (None, *ENGINES):
        raise OptionError(f"engine: {engine!r} is not known. Allowed: {', '.join(ENGINES)}.")
    unique = _unique_sequences(sequences)
    if engine is None:
        engine = _default_engine(len(unique.sequences))
    residues = sum(map(len, sequences))
    unique_groups = _single_groups(unique.members, groups)
    # significant alignments of different sequences, without those that the groups exclude
    lengths = np.array([len(sequence) for sequence in unique.sequences], np.int64)
    compare = _Alignments(unique.sequences, residues, rule.max_evalue, engine)
    search = PairSearch(lengths, rule.last_partners(lengths), compare, unique_groups)
    folder = None if cache is None else cache / "homologs" / _search_digest(search, rule)
    if engine == "mmseqs":
        table, total = _search_with_mmseqs(search, rule, workers, folder)
        if report is not None and len(lengths) > 1:
            report(total, total)
    else:
        table, total = search_pairs(search, cells=_CELLS, workers=workers, folder=folder, report=report)
    # those that the rule allows
    table = table.reshape(-1, 6)
    pairs = table[:, :2].astype(np.int64)
    table = table[rule.holds(table[:, 2], table[:, 3], table[:, 4], lengths[pairs])]
    # pairs of all sequences
    aligner = engine if engine in ALIGNERS else default_aligner()
    rows = [*_pairs_of_members(table, unique.members), *_equal_pairs(unique, residues, aligner)]
    table = np.array(sorted(rows), np.float64).reshape(-1, 6)
    if groups is not None:
        first_group, second_group = np.asarray(groups)[table[:, :2].T.astype(np.int64)]
        table = table[first_group != second_group]
    first, second = table[:, :2].T.astype(np.int64)
    return Homologs(len(sequences), first, second, *table[:, 2:].T, total, engine)


@dataclass(frozen=True)
class _UniqueSequences:
    """Different sequences in order of length, and the numbers of the given sequences that are equal to each."""

    sequences: list[str]
    members: list[list[int]]


def _unique_sequences(sequences: Sequence[str]) -> _UniqueSequences:
    """Return the different sequences, without those of unknown types only."""
    members: dict[str, list[int]] = {}
    for number, sequence in enumerate(sequences):
        letters = _standard_letters(sequence)
        if set(letters) - {"X"}:
            members.setdefault(letters, []).append(number)
    unique = sorted(members, key=lambda letters: (len(letters), letters))
    return _UniqueSequences(unique, [members[letters] for letters in unique])


def _default_engine(number: int) -> str:
    """Return the program for a number of different sequences."""
    if number > _EXHAUSTIVE and find_mmseqs():
        return "mmseqs"
    return default_aligner()


def _search_digest(search: PairSearch, rule: HomologyRule) -> str:
    """Return the name of the folder of finished blocks: a digest of everything on which they depend."""
    compare = search.compare
    groups = None if search.groups is None else search.groups.tolist()
    content = [_FORMAT, compare.sequences, asdict(rule), compare.residues, groups, compare.engine]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]


def _standard_letters(sequence: str) -> str:
    """Return one-letter codes with X for everything but the 20 amino acids."""
    if _KNOWN.issuperset(sequence):
        return sequence
    return "".join(c if c in _KNOWN else "X" for c in sequence)


def _single_groups(members: list[list[int]], groups: Sequence[int] | None) -> np.ndarray | None:
    """Return the group of each unique sequence, −1 if it is in several; None without groups."""
    if groups is None:
        return None
    group_of = np.asarray(groups)
    sets = [set(group_of[numbers].tolist()) for numbers in members]
    return np.array([numbers.pop() if len(numbers) == 1 else -1 for numbers in sets], np.int64)


@dataclass(frozen=True)
class _Alignments:
    """Significant alignments of a sequence with others, as rows: two numbers, identity, two coverages, E."""

    sequences: list[str]
    residues: int
    max_evalue: float
    engine: str

    def __call__(self, i: int, partners: np.ndarray) -> Rows:
        sequence, letters = self.sequences[i], _codes(self.sequences[i])
        align = local_aligner(sequence, PROTEIN, self.engine)
        lengths = np.array([len(self.sequences[j]) for j in partners.tolist()], np.int64)
        scores = least_score(lengths, self.residues, self.max_evalue)
        rows: Rows = []
        for j, least in zip(partners.tolist(), scores.tolist(), strict=True):
            other = self.sequences[j]
            alignment = align(other, least)
            if alignment is None or not len(alignment.pairs):
                continue
            first, second = letters[alignment.pairs[:, 0]], _codes(other)[alignment.pairs[:, 1]]
            matches = int(((first == second) & (first != ord("X"))).sum())
            covered = alignment.spans[0] / len(sequence), alignment.spans[1] / len(other)
            e = float(evalue(alignment.score, len(other), self.residues))
            rows.append((i, j, matches / alignment.columns, *covered, e))
        return rows


def _codes(sequence: str) -> np.ndarray:
    return np.frombuffer(sequence.encode("ascii"), np.uint8)


def _search_with_mmseqs(
    search: PairSearch, rule: HomologyRule, threads: int, folder: Path | None
) -> tuple[np.ndarray, int]:
    """Return the rows that MMseqs2 finds, without those of one group, and the number of pairs."""
    number = len(search.lengths)
    if number < 2:
        return np.zeros((0, 6)), 0
    compute = partial(search_with_mmseqs, search.compare.sequences, rule, threads)
    table = compute() if folder is None else saved_rows(folder / "mmseqs.npz", compute)
    if search.groups is not None:
        first, second = search.groups[table[:, :2].astype(np.int64)].T
        table = table[(first != second) | (first < 0)]
    return table, sum(len(search.partners(i)) for i in range(number))


def _pairs_of_members(table: np.ndarray, members: list[list[int]]) -> Iterator[tuple[float, ...]]:
    """Yield the rows of all sequences from those of the unique ones."""
    for i, j, identity, first, second, e in table.tolist():
        for a in members[int(i)]:
            for b in members[int(j)]:
                yield (a, b, identity, first, second, e) if a < b else (b, a, identity, second, first, e)


def _equal_pairs(unique: _UniqueSequences, residues: int, engine: str) -> Iterator[tuple[float, ...]]:
    """Yield the rows of equal sequences."""
    for sequence, members in zip(unique.sequences, unique.members, strict=True):
        if len(members) < 2:
            continue
        alignment = local_aligner(sequence, PROTEIN, engine)(sequence, 0)
        if alignment is None:
            continue
        e = float(evalue(alignment.score, len(sequence), residues))
        for first, second in combinations(members, 2):
            yield first, second, 1.0, 1.0, 1.0, e
