"""Splits without relatives: homologs, chains of an entry and chains of a file stay together."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.split_assignment import SplitUnit, assign_random_splits
from protgraph.data.datasets.splits import FRACTIONS, linked_groups
from protgraph.data.datasets.table_reader import read_cells
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError
from protgraph.file_io import write_text_file
from protgraph.similarity import HomologyRule, cluster_homologs, cluster_pairs, find_homologs
from protgraph.structure.alignment import StructureRule, find_structure_pairs
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.train.chain_sequences import (
    ChainSequences,
    all_examples,
    dataset_of_proteins,
    entry_of,
    read_chain_sequences,
)
from protgraph.train.check_splits import SplitCheck, add_structure_leaks, find_leaks
from protgraph.wording import count_noun

__all__ = ["DatasetSplit", "split_dataset"]


@dataclass(frozen=True)
class DatasetSplit:
    """Result of :func:`split_dataset`; ``str`` returns the lines of ``protgraph data split``.

    Parameters
    ----------
    rule : str
        How the splits were made.
    clusters : dict of str to str
        Example → cluster.
    splits : dict of str to str
        Example → split.
    header : tuple of str
        Columns of the table of :meth:`write`.
    rows : tuple of tuple of str
        Rows of that table.
    check : SplitCheck
        Relatives in different splits, of which there are none, and the nearest training proteins.
    notes : tuple of str
        Messages for the user.
    """

    rule: str
    clusters: Mapping[str, str]
    splits: Mapping[str, str]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    check: SplitCheck
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        sizes = Counter(self.clusters.values())
        largest, number = max(sizes, key=lambda name: (sizes[name], name)), len(self.splits)
        lines = [
            f"{count_noun(number, 'protein')} in {count_noun(len(sizes), 'cluster')}; the largest, {largest}, has "
            f"{sizes[largest]} ({sizes[largest] / number:.0%})",
            self.rule,
            *self.notes,
            str(self.check),
        ]
        return "\n".join(lines)

    def write(self, path: str | Path) -> Path:
        """Write the table, CSV: the label table, or file and chain, with the columns cluster and split."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        write_text_file(path, text.getvalue())
        return Path(path)


def split_dataset(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
    *,
    labels: Any = None,
    task: str | None = None,
    rule: HomologyRule | None = None,
    structure: StructureRule | None = None,
    engine: str | None = None,
    fractions: Mapping[str, float] = FRACTIONS,
    seed: int = 0,
    workers: int = 1,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> DatasetSplit:
    """Assign proteins to random splits so that no relatives are in different ones, and check the result.

    Relatives are homologs, chains of one entry, chains of one file and, if asked for, chains of similar structure, also
    through others. Labels of a table are balanced over the splits.

    Parameters
    ----------
    dataset, labels, task, read, cache
        As of :func:`protgraph.train.load_dataset`; a task is not required. A column ``split`` of the table is replaced.
    rule : HomologyRule, optional
        When two chains are homologs.
    structure : StructureRule, optional
        When two chains have similar structures; None: structures are not compared.
    engine : str, optional
        As of :func:`protgraph.similarity.find_homologs`.
    fractions : mapping of str to float
        Fraction of each split; they sum to 1.
    seed, workers : int
        Seed of the random splits; number of processes of the alignments.
    report : callable, optional
        Called with the stage and the numbers of finished and of all items.

    Raises
    ------
    DatasetError
        No protein can be read, or the fractions are invalid.
    """
    data = dataset_of_proteins(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    step = (lambda stage: None) if report is None else (lambda stage: lambda done, total: report(stage, done, total))
    chains = read_chain_sequences(data, all_examples(data), step("read"), structures=structure is not None)
    if not chains.examples:
        raise DatasetError(f"dataset {data.name!r}: no protein can be read. The first: {chains.failures[0]}")
    rule, folder = rule or HomologyRule(), cache_dir(cache)
    found = find_homologs(chains.sequences, rule, workers=workers, engine=engine, cache=folder, report=step("align"))
    related = [("homologs", cluster_homologs(found).tolist())]
    if structure is not None:
        alike = find_structure_pairs(chains.traces, structure, workers=workers, cache=folder, report=step("superpose"))
        related.append(("structure", cluster_pairs(alike.number, alike.first, alike.second).tolist()))
    clusters = _clusters(chains, related)
    strata = data.strata if isinstance(data, FolderDataset) else None
    units = [
        SplitUnit(e.id, clusters=frozenset([c]), counts=() if strata is None else data.label_counts(e))
        for e, c in zip(chains.examples, clusters, strict=True)
    ]
    assigned = assign_random_splits(units, fractions=fractions, seed=seed, strata=strata)
    examples = tuple(replace(e, split=s) for e, s in zip(chains.examples, assigned.splits, strict=True))
    chains = replace(chains, examples=examples)
    check = find_leaks(data.name, chains, rule, engine=engine, workers=workers, cache=folder, report=step("check"))
    if structure is not None:
        check = add_structure_leaks(check, chains, alike, structure)
    kinds = "homologs, entry or file" if structure is None else "homologs, similar structures, entry or file"
    text = assigned.rule.replace("a sequence or cluster", f"a cluster ({kinds})")
    of = {e.id: c for e, c in zip(examples, clusters, strict=True)}
    split_of = {e.id: e.split for e in examples}
    header, rows = _table(data, labels, examples, of)
    return DatasetSplit(text, of, split_of, header, rows, check, assigned.notes)


def _clusters(chains: ChainSequences, related: Sequence[tuple[str, Sequence[int]]]) -> list[str]:
    """Return the cluster of each example, named after its first example, from clusters of chains of each kind."""
    links: list[set[object]] = [{("file", e.path, e.record)} for e in chains.examples]
    for own, example in zip(links, chains.examples, strict=True):
        own |= {("entry", entry)} if (entry := entry_of(example)) else set()
    for kind, numbers in related:
        for chain, cluster in enumerate(numbers):
            links[chains.example[chain]].add((kind, cluster))
    group = linked_groups(links)
    first: dict[int, str] = {}
    for g, example in zip(group, chains.examples, strict=True):
        first[g] = min(first.get(g, example.id), example.id)
    return [first[g] for g in group]


def _table(
    data: Dataset, labels: Any, examples: Sequence[Example], clusters: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return header and rows: those of the label table, or one row per example."""
    if labels is not None and isinstance(data, FolderDataset):
        (_, names), *body = read_cells(labels).rows
        keep = [i for i, name in enumerate(names) if name.strip().lower() not in ("cluster", "split")]
        cells = {number: tuple(row[i] if i < len(row) else "" for i in keep) for number, row in body}
        found = [(n, (*cells[n], clusters[e.id], e.split)) for e in examples for n in data.rows(e).tolist()]
        return (*(names[i] for i in keep), "cluster", "split"), tuple(row for _, row in sorted(found))
    folder = Path(os.path.commonpath([e.path.parent.resolve() for e in examples]))
    files = [e.record or e.path.resolve().relative_to(folder).as_posix() for e in examples]
    of_file = list(zip(files, examples, strict=True))
    if all(e.chains is None for e in examples):
        return ("file", "cluster", "split"), tuple((file, clusters[e.id], e.split) for file, e in of_file)
    rows = [(file, chain, clusters[e.id], e.split) for file, e in of_file for chain in e.chains or ("",)]
    return ("file", "chain", "cluster", "split"), tuple(rows)
