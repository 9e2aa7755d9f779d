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

from protgraph_plugins.similarity.chains import ChainSequences, entry_of, read_chain_sequences
from protgraph_plugins.similarity.homologs import HomologyRule, cluster_homologs, find_homologs
from protgraph_plugins.similarity.leaks import SplitCheck, add_structure_leaks, find_leaks, report_of_stage
from protgraph_plugins.similarity.pair_search import cluster_pairs
from protgraph_plugins.similarity.structure_pairs import StructureRule, find_structure_pairs

from protgraph.data import Dataset, Example, FolderDataset, GraphStore
from protgraph.data.datasets import FRACTIONS, SplitUnit, assign_random_splits, linked_groups, read_cells
from protgraph.errors import DatasetError
from protgraph.file_io import write_text_file
from protgraph.labels import load_proteins
from protgraph.structure import ReadOptions
from protgraph.structure.io import cache_dir
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
        As of :func:`protgraph.labels.load_dataset`; a task is not required. A column ``split`` is replaced.
    rule : HomologyRule, optional
        When two chains are homologs.
    structure : StructureRule, optional
        When two chains have similar structures; None: structures are not compared.
    engine : str, optional
        As of :func:`find_homologs`.
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
    data = load_proteins(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    step, folder = report_of_stage(report), cache_dir(cache)
    chains = read_chain_sequences(data, data.all_examples(), step("read"), structures=structure is not None)
    if not chains.examples:
        raise DatasetError(f"dataset {data.name!r}: no protein can be read. The first: {chains.failures[0]}")
    # clusters of relatives of each kind, and of all kinds together
    rule = rule or HomologyRule()
    homologs = find_homologs(chains.sequences, rule, workers=workers, engine=engine, cache=folder, report=step("align"))
    related = {"homologs": cluster_homologs(homologs).tolist()}
    similar = None
    if structure is not None:
        similar = find_structure_pairs(
            chains.traces, structure, workers=workers, cache=folder, report=step("superpose")
        )
        related["structure"] = cluster_pairs(similar.number, similar.first, similar.second).tolist()
    clusters = _clusters(chains, related)
    # a random split of each cluster
    strata = data.strata if isinstance(data, FolderDataset) else None
    units = []
    for example in chains.examples:
        counts = () if strata is None else data.label_counts(example)
        units.append(SplitUnit(example.id, clusters=frozenset([clusters[example.id]]), counts=counts))
    assigned = assign_random_splits(units, fractions=fractions, seed=seed, strata=strata)
    # the check of the result, and its table
    examples = tuple(replace(e, split=s) for e, s in zip(chains.examples, assigned.splits, strict=True))
    chains = replace(chains, examples=examples)
    check = find_leaks(data.name, chains, rule, engine=engine, workers=workers, cache=folder, report=step("check"))
    kinds = "homologs, entry or file"
    if similar is not None and structure is not None:
        check = add_structure_leaks(check, chains, similar, structure)
        kinds = "homologs, similar structures, entry or file"
    text = assigned.rule.replace("a sequence or cluster", f"a cluster ({kinds})")
    header, rows = _table(data, labels, examples, clusters)
    splits = {example.id: example.split for example in examples}
    return DatasetSplit(text, clusters, splits, header, rows, check, assigned.notes)


def _clusters(chains: ChainSequences, related: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Return the cluster of each example, named after its first example, from clusters of chains of each kind."""
    links: list[set[object]] = []
    for example in chains.examples:
        entry = entry_of(example)
        links.append({("file", example.path, example.record)})
        if entry:
            links[-1].add(("entry", entry))
    for kind, clusters in related.items():
        for chain, cluster in enumerate(clusters):
            links[chains.example[chain]].add((kind, cluster))
    groups = linked_groups(links)
    first: dict[int, str] = {}
    for group, example in zip(groups, chains.examples, strict=True):
        first[group] = min(first.get(group, example.id), example.id)
    return {example.id: first[group] for group, example in zip(groups, chains.examples, strict=True)}


def _table(
    data: Dataset, labels: Any, examples: Sequence[Example], clusters: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return header and rows: those of the label table, or one row per example."""
    if labels is not None and isinstance(data, FolderDataset):
        return _label_table(data, labels, examples, clusters)
    folder = Path(os.path.commonpath([e.path.parent.resolve() for e in examples]))
    has_chains = any(example.chains is not None for example in examples)
    rows = []
    for example in examples:
        file = example.record or example.path.resolve().relative_to(folder).as_posix()
        assigned = (clusters[example.id], example.split)
        if has_chains:
            rows += [(file, chain, *assigned) for chain in example.chains or ("",)]
        else:
            rows.append((file, *assigned))
    return ("file", *(["chain"] if has_chains else []), "cluster", "split"), tuple(rows)


def _label_table(
    data: FolderDataset, labels: Any, examples: Sequence[Example], clusters: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return header and rows of the label table, its columns cluster and split replaced."""
    (_, names), *body = read_cells(labels).rows
    columns = [i for i, name in enumerate(names) if name.strip().lower() not in ("cluster", "split")]
    cells_of_row = dict(body)
    rows = []
    for example in examples:
        for number in data.rows(example).tolist():
            row = cells_of_row[number]
            cells = [row[i] if i < len(row) else "" for i in columns]
            rows.append((number, (*cells, clusters[example.id], example.split)))
    header = (*(names[i] for i in columns), "cluster", "split")
    return header, tuple(row for _, row in sorted(rows))
