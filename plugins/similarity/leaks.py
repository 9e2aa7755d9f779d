"""Leaks between splits: relatives of a protein in another split, found by aligning all chains."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from protgraph_plugins.similarity.chains import ChainSequences, entry_of, read_chain_sequences
from protgraph_plugins.similarity.homologs import Homologs, HomologyRule, find_homologs
from protgraph_plugins.similarity.structure_pairs import (
    LEAST_CHAIN,
    StructurePairs,
    StructureRule,
    find_structure_pairs,
)

from protgraph.data import Dataset, Example, GraphStore
from protgraph.data.datasets import order_splits
from protgraph.errors import DatasetError
from protgraph.featurize import Failure
from protgraph.file_io import write_text_file
from protgraph.labels import load_proteins
from protgraph.structure import ReadOptions
from protgraph.structure.io import cache_dir
from protgraph.wording import count_noun

__all__ = ["SplitCheck", "SplitLeak", "add_structure_leaks", "check_splits", "find_leaks", "find_related_examples"]
ENTRY_POINTS = {"protgraph.relatives": {"homologs": "find_related_examples"}}

_SHOWN = 5
_BINS = (0, 30, 40, 50, 70, 95, 100)  # % identity of the nearest training protein
_ANY = HomologyRule(identity=0, coverage=0, coverage_of="shorter")


@dataclass(frozen=True)
class SplitLeak:
    """Two related proteins in different splits.

    Parameters
    ----------
    kind : {"file", "entry", "sequence", "homolog", "structure"}
        What they share: the structure file, the entry of the database, the sequence of a chain, ancestry, or the fold.
    split, protein : str
        The one that is not in the training split, if the other is.
    other_split, other_protein : str
    identity, coverage, other_coverage, evalue : float
        Of the alignment, see :class:`HomologyRule`; NaN for "file", "entry" and "structure".
    tm : float
        TM-score for "structure", else NaN.
    """

    kind: str
    split: str
    protein: str
    other_split: str
    other_protein: str
    identity: float = float("nan")
    coverage: float = float("nan")
    other_coverage: float = float("nan")
    evalue: float = float("nan")
    tm: float = float("nan")

    @property
    def pair(self) -> tuple[str, ...]:
        """The two proteins, each after its split."""
        return astuple(self)[1:5]

    def __str__(self) -> str:
        text = f"{self.protein} ({self.split}) – {self.other_protein} ({self.other_split})"
        if self.kind == "structure":
            return f"{text}: TM-score {self.tm:.2f}"
        if np.isnan(self.identity):
            return text
        return f"{text}: identity {self.identity:.0%} over {self.coverage:.0%} and {self.other_coverage:.0%}"


@dataclass(frozen=True)
class SplitCheck:
    """Relatives in different splits of a dataset; ``str`` returns the lines of ``protgraph data check``.

    Parameters
    ----------
    name : str
        Name of the dataset.
    rule : HomologyRule
    sizes : dict of str to int
        Proteins of each split.
    leaks : tuple of SplitLeak
        All related proteins in different splits; for "homolog", "sequence" and "structure", the most similar pair of
        two proteins.
    nearest : tuple of SplitLeak
        The most similar training protein of each other protein that has a significant alignment with one, whatever its
        identity and coverage.
    failures : tuple of Failure
        Proteins that could not be read.
    aligned : int
        Pairs of chains that were compared.
    engine : str
        Program that found the homologs.
    structures : str
        How structures were compared; empty if they were not.
    """

    name: str
    rule: HomologyRule
    sizes: dict[str, int]
    leaks: tuple[SplitLeak, ...]
    nearest: tuple[SplitLeak, ...]
    failures: tuple[Failure, ...] = ()
    aligned: int = 0
    engine: str = ""
    structures: str = ""

    @property
    def has_leaks(self) -> bool:
        """True if any two related proteins are in different splits."""
        return bool(self.leaks)

    def related(self, split: str, other: str, *, kind: str | None = None, identity: float = 0.0) -> list[str]:
        """Return the proteins of a split that have a relative in another one."""
        proteins = set()
        for leak in self.leaks:
            if kind not in (None, leak.kind) or (identity > 0 and not leak.identity >= identity):
                continue
            if (leak.split, leak.other_split) == (split, other):
                proteins.add(leak.protein)
            if (leak.other_split, leak.split) == (split, other):
                proteins.add(leak.other_protein)
        return sorted(proteins)

    def __str__(self) -> str:
        """Return splits, leaks by kind with examples, and the distribution of the nearest training proteins."""
        sizes = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        lines = [
            f"dataset {self.name}: {sizes} proteins; {count_noun(self.aligned, 'pair')} of chains compared",
            f"homologs by {self.engine}: {self.rule.text}",
        ]
        if self.structures:
            lines.append(self.structures)
        lines += [*self._numbers(), *self._examples(), *self._histogram()]
        if self.failures:
            lines.append(f"{count_noun(len(self.failures), 'protein')} not read; the first: {self.failures[0]}")
        lines.append(f"{count_noun(len(self.leaks), 'pair')} of relatives" if self.leaks else "no leak found")
        return "\n".join(lines)

    def _numbers(self) -> Iterator[str]:
        """Yield how many proteins of each split have a relative in each earlier one."""
        names = list(self.sizes)
        for i, split in enumerate(names):
            for other in names[:i]:
                related = self.related(split, other)
                size = self.sizes[split]
                line = f"{split} ~ {other}: {len(related)} of {size} proteins of {split} have a relative in {other}"
                close = len(self.related(split, other, identity=0.95))
                yield f"{line} ({close} at ≥ 95 % identity)" if related else line

    def _examples(self) -> Iterator[str]:
        """Yield the number of leaks of each kind, and the most similar ones."""
        for kind, number in Counter(leak.kind for leak in self.leaks).items():
            leaks = [leak for leak in self.leaks if leak.kind == kind]
            leaks.sort(key=lambda leak: -np.nan_to_num([leak.identity, leak.tm]).sum())
            yield f"{kind}: {count_noun(number, 'pair')}"
            yield from (f"  {leak}" for leak in leaks[:_SHOWN])
            if number > _SHOWN:
                yield f"  and {number - _SHOWN} more"

    def _histogram(self) -> Iterator[str]:
        """Yield how many proteins of a split have a nearest training protein of which identity."""
        if "train" not in self.sizes:
            return
        for split in self.sizes:
            if split == "train":
                continue
            identity = np.array([100 * leak.identity for leak in self.nearest if leak.split == split])
            counts = np.histogram(identity, _BINS)[0].tolist()
            bins = zip(_BINS, _BINS[1:], counts, strict=False)
            parts = [f"{low}–{high} %: {number}" for low, high, number in bins if number]
            parts.append(f"none found: {self.sizes[split] - len(identity)}")
            yield f"nearest training protein of {split}: {', '.join(parts)}"

    def write(self, path: str | Path) -> Path:
        """Write a CSV of all leaks, then of the nearest training proteins (kind "nearest")."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([field.name for field in fields(SplitLeak)])
        for leak in (*self.leaks, *self.nearest):
            writer.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in astuple(leak)])
        write_text_file(path, text.getvalue())
        return Path(path)


def check_splits(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
    *,
    labels: Any = None,
    task: str | None = None,
    rule: HomologyRule | None = None,
    structure: StructureRule | None = None,
    engine: str | None = None,
    seed: int = 0,
    workers: int = 1,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> SplitCheck:
    """Find related proteins in different splits, by aligning all chains of different splits.

    Clusters of the dataset are not trusted; all identities are computed.

    Parameters
    ----------
    dataset, labels, task, seed, read, cache
        As of :func:`protgraph.labels.load_dataset`; a task is not required.
    rule : HomologyRule, optional
        When two chains are homologs.
    structure : StructureRule, optional
        When two chains have similar structures; None: structures are not compared.
    engine : str, optional
        As of :func:`find_homologs`.
    workers : int
        Number of processes.
    report : callable, optional
        Called with the stage and the numbers of finished and of all items.

    Raises
    ------
    DatasetError
        The dataset has a single split.
    """
    data = load_proteins(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    examples = data.all_examples()
    if len({example.split for example in examples}) < 2:
        raise DatasetError(
            f"dataset {data.name!r} has one split; nothing can leak. Give a table with a column 'split'."
        )
    step = report_of_stage(report)
    chains = read_chain_sequences(data, examples, step("read"), structures=structure is not None)
    rule, folder = rule or HomologyRule(), cache_dir(cache)
    check = find_leaks(data.name, chains, rule, engine=engine, workers=workers, cache=folder, report=step("align"))
    if structure is None:
        return check
    found = find_structure_pairs(
        chains.traces, structure, groups=_groups(chains), workers=workers, cache=folder, report=step("superpose")
    )
    return add_structure_leaks(check, chains, found, structure)


def report_of_stage(
    report: Callable[[str, int, int], None] | None,
) -> Callable[[str], Callable[[int, int], None] | None]:
    """Return a function from a stage to a report of finished and all items, or to None without a report."""
    if report is None:
        return lambda stage: None
    return lambda stage: lambda done, total: report(stage, done, total)


def find_leaks(
    name: str,
    chains: ChainSequences,
    rule: HomologyRule,
    *,
    engine: str | None = None,
    workers: int = 1,
    cache: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> SplitCheck:
    """Find the leaks of a dataset whose chains were read; arguments as of :func:`check_splits`."""
    groups = _groups(chains)
    alignments = find_homologs(
        chains.sequences, _ANY, groups=groups, workers=workers, engine=engine, cache=cache, report=report
    )
    # homologs among the significant alignments
    lengths = np.array([len(s) for s in chains.sequences], np.int64)[np.stack([alignments.first, alignments.second], 1)]
    holds = rule.holds(
        alignments.identity, alignments.first_coverage, alignments.second_coverage, lengths.reshape(-1, 2)
    )
    holds &= alignments.evalue <= rule.max_evalue
    pairs = list(_aligned_pairs(chains, alignments, groups))
    homologous = [leak for leak, is_homolog in zip(pairs, holds.tolist(), strict=True) if is_homolog]
    leaks = (*_shared(chains, "file"), *_shared(chains, "entry"), *_most_similar(homologous, "identity"))
    # the most similar training protein of each other one
    nearest: dict[tuple[str, str], SplitLeak] = {}
    for leak in pairs:
        key = leak.split, leak.protein
        if leak.other_split == "train" and (key not in nearest or leak.identity > nearest[key].identity):
            nearest[key] = replace(leak, kind="nearest")
    closest = tuple(nearest[key] for key in sorted(nearest))
    counts = Counter(example.split for example in chains.examples)
    sizes = {split: counts[split] for split in order_splits(counts)}
    return SplitCheck(name, rule, sizes, leaks, closest, chains.failures, alignments.aligned, alignments.engine)


def add_structure_leaks(
    check: SplitCheck, chains: ChainSequences, pairs: StructurePairs, rule: StructureRule
) -> SplitCheck:
    """Return the check with the pairs of similar structures in different splits."""
    groups = _groups(chains)
    similar = []
    for a, b, tm in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.tm.tolist(), strict=True):
        if groups[a] != groups[b]:
            later, earlier = (a, b) if groups[a] > groups[b] else (b, a)
            similar.append(_leak(chains, "structure", later, earlier, tm=tm))
    text = f"structures: {rule.text}; {count_noun(pairs.compared, 'pair')} of chains, {pairs.aligned} aligned"
    if pairs.left_out:
        short = f"{count_noun(pairs.left_out, 'chain')} of fewer than {LEAST_CHAIN} residues with coordinates"
        text = f"{text}; left out: {short}"
    return replace(check, leaks=(*check.leaks, *_most_similar(similar, "tm")), structures=text)


class RelatedExamples(NamedTuple):
    """Examples with a homolog in other datasets, by id, and the rule in a line."""

    ids: tuple[str, ...]
    rule: str


def find_related_examples(
    dataset: Dataset,
    examples: Sequence[Example],
    other_datasets: Sequence[tuple[Dataset, Sequence[Example]]],
    *,
    cache: str | Path | None = None,
) -> RelatedExamples:
    """Return the examples with a chain that is a homolog of a chain of other datasets; a shared domain is enough."""
    rule = HomologyRule(coverage_of="shorter")
    sequences, groups, owners = [], [], []
    for number, (source, members) in enumerate([(dataset, examples), *other_datasets]):
        chains = read_chain_sequences(source, members)
        sequences += chains.sequences
        groups += [min(number, 1)] * len(chains.sequences)
        owners += [chains.examples[i].id for i in chains.example]
    homologs = find_homologs(sequences, rule, groups=groups, cache=cache_dir(cache))
    related = sorted({*homologs.first.tolist(), *homologs.second.tolist()})
    return RelatedExamples(tuple(dict.fromkeys(owners[i] for i in related if groups[i] == 0)), rule.text)


def _groups(chains: ChainSequences) -> list[int]:
    """Return the number of the split of each chain, in the order of the splits."""
    splits = [chains.examples[e].split for e in chains.example]
    number = {name: i for i, name in enumerate(order_splits(set(splits)))}
    return [number[split] for split in splits]


def _leak(chains: ChainSequences, kind: str, chain: int, other_chain: int, **values: float) -> SplitLeak:
    example, other = (chains.examples[chains.example[c]] for c in (chain, other_chain))
    return SplitLeak(kind, example.split, example.id, other.split, other.id, **values)


def _aligned_pairs(chains: ChainSequences, found: Homologs, groups: Sequence[int]) -> Iterator[SplitLeak]:
    """Yield every alignment as a leak, the earlier split (train first) as the other one."""
    columns = (found.first, found.second, found.identity, found.first_coverage, found.second_coverage, found.evalue)
    for a, b, identity, first, second, e in zip(*(column.tolist() for column in columns), strict=True):
        kind = "sequence" if chains.sequences[a] == chains.sequences[b] else "homolog"
        if groups[a] < groups[b]:
            a, b, first, second = b, a, second, first
        yield _leak(chains, kind, a, b, identity=identity, coverage=first, other_coverage=second, evalue=e)


def _most_similar(leaks: Iterable[SplitLeak], score: str) -> list[SplitLeak]:
    """Return the pair of chains of the highest score for each pair of proteins."""
    best: dict[tuple[str, ...], SplitLeak] = {}
    for leak in leaks:
        if leak.pair not in best or getattr(leak, score) > getattr(best[leak.pair], score):
            best[leak.pair] = leak
    return [best[pair] for pair in sorted(best)]


def _shared(chains: ChainSequences, kind: str) -> Iterator[SplitLeak]:
    """Yield examples of one file, or of one entry in different files, that are in different splits."""
    groups: dict[object, list[Example]] = {}
    for example in chains.examples:
        key = (example.path, example.record) if kind == "file" else entry_of(example)
        if key is not None:
            groups.setdefault(key, []).append(example)
    splits = order_splits({example.split for example in chains.examples})
    rank = {name: number for number, name in enumerate(splits)}
    for members in groups.values():
        for first, second in combinations(members, 2):
            is_other_kind = kind == "entry" and first.path == second.path  # chains of one file
            if first.split == second.split or is_other_kind:
                continue
            earlier, later = sorted((first, second), key=lambda example: rank[example.split])
            yield SplitLeak(kind, later.split, later.id, earlier.split, earlier.id)
