"""Check that no protein of a split has a relative in another split."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.folder_splits import order_splits
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError
from protgraph.similarity import Homologs, HomologyRule, find_homologs
from protgraph.structure.alignment import StructurePairs, StructureRule, find_structure_pairs
from protgraph.structure.alignment.structure_pairs import LEAST_CHAIN
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.train.chain_sequences import (
    ChainSequences,
    all_examples,
    dataset_of_proteins,
    entry_of,
    read_chain_sequences,
)
from protgraph.train.split_leaks import SplitCheck, SplitLeak
from protgraph.wording import count_noun

__all__ = ["SplitCheck", "SplitLeak", "add_structure_leaks", "check_splits", "find_leaks"]

_ANY = HomologyRule(identity=0, coverage=0, coverage_of="shorter")


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
        As of :func:`protgraph.train.load_dataset`; a task is not required.
    rule : HomologyRule, optional
        When two chains are homologs.
    structure : StructureRule, optional
        When two chains have similar structures; None: structures are not compared.
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
    chains = read_chain_sequences(data, examples, step("read"), structures=structure is not None)
    rule, folder = rule or HomologyRule(), cache_dir(cache)
    check = find_leaks(data.name, chains, rule, engine=engine, workers=workers, cache=folder, report=step("align"))
    if structure is None:
        return check
    found = find_structure_pairs(
        chains.traces, structure, groups=_groups(chains), workers=workers, cache=folder, report=step("superpose")
    )
    return add_structure_leaks(check, chains, found, structure)


def add_structure_leaks(
    check: SplitCheck, chains: ChainSequences, found: StructurePairs, rule: StructureRule
) -> SplitCheck:
    """Return the check with the pairs of similar structures in different splits."""
    groups = np.array(_groups(chains))
    best: dict[tuple[str, ...], SplitLeak] = {}
    for a, b, tm in zip(found.first.tolist(), found.second.tolist(), found.tm.tolist(), strict=True):
        if groups[a] == groups[b]:
            continue
        a, b = (b, a) if groups[a] < groups[b] else (a, b)
        own, other = chains.examples[chains.example[a]], chains.examples[chains.example[b]]
        leak = SplitLeak("structure", own.split, own.id, other.split, other.id, tm=tm)
        if (key := astuple(leak)[1:5]) not in best or tm > best[key].tm:
            best[key] = leak
    leaks = (*check.leaks, *(best[key] for key in sorted(best)))
    return replace(check, leaks=leaks, structures=_describe_comparison(found, rule))


def _describe_comparison(found: StructurePairs, rule: StructureRule) -> str:
    """Return a line about how structures were compared, and what was left out."""
    text = f"structures: {rule.text}; {count_noun(found.compared, 'pair')} of chains, {found.aligned} aligned"
    if found.left_out:
        text += (
            f"; left out: {count_noun(found.left_out, 'chain')} of fewer than {LEAST_CHAIN} residues with coordinates"
        )
    return text


def _groups(chains: ChainSequences) -> list[int]:
    """Return the number of the split of each chain, in the order of the splits."""
    splits = [chains.examples[e].split for e in chains.example]
    number = {name: i for i, name in enumerate(order_splits(set(splits)))}
    return [number[split] for split in splits]


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
