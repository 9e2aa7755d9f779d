"""Check that no protein of a split has a relative in another split."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.folder_splits import order_splits
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError
from protgraph.failure import Failure
from protgraph.file_io import write_text_file
from protgraph.similarity import Homologs, HomologyRule, find_homologs
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.train.chain_sequences import (
    ChainSequences,
    all_examples,
    dataset_of_proteins,
    entry_of,
    read_chain_sequences,
)
from protgraph.wording import count_noun

__all__ = ["SplitCheck", "SplitLeak", "check_splits", "find_leaks"]

_ANY = HomologyRule(identity=0, coverage=0, coverage_of="shorter")
_SHOWN = 5
_BINS = (0, 30, 40, 50, 70, 95, 100)  # % identity of the nearest training protein


@dataclass(frozen=True)
class SplitLeak:
    """Two related proteins in different splits.

    Parameters
    ----------
    kind : {"file", "entry", "sequence", "homolog"}
        What they share: the structure file, the entry of the database, the sequence of a chain, or ancestry.
    split, protein : str
        The one that is not in the training split, if the other is.
    other_split, other_protein : str
    identity, coverage, other_coverage, evalue : float
        Of the alignment, see :class:`~protgraph.similarity.HomologyRule`; NaN for "file" and "entry".
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


@dataclass(frozen=True)
class SplitCheck:
    """Result of :func:`check_splits`; ``str`` returns the lines of ``protgraph data check``.

    Parameters
    ----------
    name : str
        Name of the dataset.
    rule : HomologyRule
    sizes : dict of str to int
        Proteins of each split.
    leaks : tuple of SplitLeak
        All related proteins in different splits; for "homolog" and "sequence", the most similar pair of two proteins.
    nearest : tuple of SplitLeak
        The most similar training protein of each other protein that has a significant alignment with one, whatever its
        identity and coverage.
    failures : tuple of Failure
        Proteins that could not be read.
    aligned : int
        Pairs of chains that were compared.
    engine : str
        Program that found the homologs.
    """

    name: str
    rule: HomologyRule
    sizes: dict[str, int]
    leaks: tuple[SplitLeak, ...]
    nearest: tuple[SplitLeak, ...]
    failures: tuple[Failure, ...] = ()
    aligned: int = 0
    engine: str = ""

    @property
    def has_leaks(self) -> bool:
        """True if any two related proteins are in different splits."""
        return bool(self.leaks)

    def related(self, split: str, other: str, *, kind: str | None = None, identity: float = 0.0) -> list[str]:
        """Return the proteins of a split that have a relative in another one."""
        pairs = [(leak, leak.split, leak.protein, leak.other_split) for leak in self.leaks]
        pairs += [(leak, leak.other_split, leak.other_protein, leak.split) for leak in self.leaks]
        found = {
            protein
            for leak, own, protein, theirs in pairs
            if (own, theirs) == (split, other)
            and kind in (None, leak.kind)
            and (identity == 0 or leak.identity >= identity)
        }
        return sorted(found)

    def __str__(self) -> str:
        """Return splits, leaks by kind with examples, and the distribution of the nearest training proteins."""
        sizes = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        lines = [f"dataset {self.name}: {sizes} proteins; {count_noun(self.aligned, 'pair')} of chains compared"]
        lines += [f"homologs by {self.engine}: {self.rule.text}"]
        names = list(self.sizes)
        for i, own in enumerate(names):
            for other in names[:i]:
                related = self.related(own, other)
                line = (
                    f"{own} ~ {other}: {len(related)} of {self.sizes[own]} proteins of {own} have a relative in {other}"
                )
                close = len(self.related(own, other, identity=0.95))
                lines.append(f"{line} ({close} at ≥ 95 % identity)" if related else line)
        kinds = Counter(leak.kind for leak in self.leaks)
        for kind, number in kinds.items():
            lines.append(f"{kind}: {count_noun(number, 'pair')}")
            shown = sorted((k for k in self.leaks if k.kind == kind), key=lambda k: -np.nan_to_num(k.identity))
            lines += [f"  {_describe(leak)}" for leak in shown[:_SHOWN]]
            lines += [f"  and {number - _SHOWN} more"] if number > _SHOWN else []
        lines += self._histogram()
        if self.failures:
            lines.append(f"{count_noun(len(self.failures), 'protein')} not read; the first: {self.failures[0]}")
        lines.append("no leak found" if not self.leaks else f"{count_noun(len(self.leaks), 'pair')} of relatives")
        return "\n".join(lines)

    def _histogram(self) -> list[str]:
        """Return how many proteins have a nearest training protein of which identity."""
        lines = []
        for split in [name for name in self.sizes if name != "train"] if "train" in self.sizes else []:
            identity = np.array([100 * leak.identity for leak in self.nearest if leak.split == split])
            counts = np.histogram(identity, _BINS)[0]
            parts = [f"{a}–{b} %: {n}" for a, b, n in zip(_BINS, _BINS[1:], counts.tolist(), strict=False) if n]
            none = self.sizes[split] - len(identity)
            lines.append(f"nearest training protein of {split}: {', '.join([*parts, f'none found: {none}'])}")
        return lines

    def write(self, path: str | Path) -> Path:
        """Write a CSV of all leaks, then of the nearest training proteins (kind "nearest")."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([field.name for field in fields(SplitLeak)])
        rows = [*self.leaks, *self.nearest]
        writer.writerows([f"{v:.4g}" if isinstance(v, float) else v for v in astuple(row)] for row in rows)
        write_text_file(path, text.getvalue())
        return Path(path)


def _describe(leak: SplitLeak) -> str:
    pair = f"{leak.protein} ({leak.split}) – {leak.other_protein} ({leak.other_split})"
    if np.isnan(leak.identity):
        return pair
    return f"{pair}: identity {leak.identity:.0%} over {leak.coverage:.0%} and {leak.other_coverage:.0%}"


def check_splits(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
    *,
    labels: Any = None,
    task: str | None = None,
    rule: HomologyRule | None = None,
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
        As of :func:`protgraph.train.load_dataset`; a task is not required.
    rule : HomologyRule, optional
        When two chains are homologs.
    engine : str, optional
        As of :func:`protgraph.similarity.find_homologs`.
    workers : int
        Number of processes.
    report : callable, optional
        Called with the stage and the numbers of finished and of all items.

    Raises
    ------
    DatasetError
        The dataset has a single split.
    """
    data = dataset_of_proteins(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    examples = all_examples(data)
    if len({example.split for example in examples}) < 2:
        raise DatasetError(
            f"dataset {data.name!r} has one split; nothing can leak. Give a table with a column 'split'."
        )
    step = (lambda stage: None) if report is None else (lambda stage: lambda done, total: report(stage, done, total))
    chains = read_chain_sequences(data, examples, step("read"))
    rule = rule or HomologyRule()
    return find_leaks(
        data.name, chains, rule, engine=engine, workers=workers, cache=cache_dir(cache), report=step("align")
    )


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
    splits = [chains.examples[e].split for e in chains.example]
    number = {name: i for i, name in enumerate(order_splits(set(splits)))}
    groups = [number[split] for split in splits]
    found = find_homologs(
        chains.sequences, _ANY, groups=groups, workers=workers, engine=engine, cache=cache, report=report
    )
    lengths = np.array([len(s) for s in chains.sequences], np.int64)[np.stack([found.first, found.second], 1)]
    holds = rule.holds(found.identity, found.first_coverage, found.second_coverage, lengths.reshape(-1, 2))
    holds &= found.evalue <= rule.max_evalue
    homologs = _most_similar(_pairs(chains, found, holds, groups))
    leaks = [*_shared(chains, "file"), *_shared(chains, "entry"), *homologs]
    nearest: dict[tuple[str, str], SplitLeak] = {}
    for leak in _pairs(chains, found, np.ones(len(found), bool), groups):
        key = leak.split, leak.protein
        if leak.other_split == "train" and (key not in nearest or leak.identity > nearest[key].identity):
            nearest[key] = SplitLeak("nearest", *astuple(leak)[1:])
    counts = Counter(example.split for example in chains.examples)
    sizes = {split: counts[split] for split in order_splits(counts)}
    closest = tuple(nearest[key] for key in sorted(nearest))
    return SplitCheck(name, rule, sizes, tuple(leaks), closest, chains.failures, found.aligned, found.engine)


def _pairs(chains: ChainSequences, found: Homologs, rows: np.ndarray, groups: Sequence[int]) -> list[SplitLeak]:
    """Return pairs of chains as leaks, the earlier split (train first) as the other one."""
    leaks = []
    for i in np.flatnonzero(rows).tolist():
        a, b = int(found.first[i]), int(found.second[i])
        covered = float(found.first_coverage[i]), float(found.second_coverage[i])
        if groups[a] < groups[b]:
            a, b, covered = b, a, covered[::-1]
        own, other = chains.examples[chains.example[a]], chains.examples[chains.example[b]]
        kind = "sequence" if chains.sequences[a] == chains.sequences[b] else "homolog"
        values = float(found.identity[i]), *covered, float(found.evalue[i])
        leaks.append(SplitLeak(kind, own.split, own.id, other.split, other.id, *values))
    return leaks


def _most_similar(leaks: Sequence[SplitLeak]) -> list[SplitLeak]:
    """Return the pair of chains of the highest identity for each pair of proteins."""
    best: dict[tuple[str, ...], SplitLeak] = {}
    for leak in leaks:
        key = leak.split, leak.protein, leak.other_split, leak.other_protein
        if key not in best or leak.identity > best[key].identity:
            best[key] = leak
    return [best[key] for key in sorted(best)]


def _shared(chains: ChainSequences, kind: str) -> list[SplitLeak]:
    """Return examples of one file, or of one entry in different files, that are in different splits."""
    groups: dict[object, list[int]] = {}
    for i, example in enumerate(chains.examples):
        key = (example.path, example.record) if kind == "file" else entry_of(example)
        if key is not None:
            groups.setdefault(key, []).append(i)
    rank = {name: i for i, name in enumerate(order_splits({e.split for e in chains.examples}))}
    leaks = []
    for members in groups.values():
        for k, a in enumerate(members):
            for b in members[k + 1 :]:
                own, other = chains.examples[a], chains.examples[b]
                if own.split == other.split or (kind == "entry" and own.path == other.path):
                    continue
                if rank[own.split] < rank[other.split]:
                    own, other = other, own
                leaks.append(SplitLeak(kind, own.split, own.id, other.split, other.id))
    return leaks
