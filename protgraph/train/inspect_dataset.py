"""Inspection of a dataset before training: description, and the faults that training would meet."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from protgraph import registry
from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.column_interpretation import check_kind, interpret_column
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.label_table import LabelTable, read_label_table
from protgraph.data.datasets.labels import ResidueLabels, count_example, describe_left_out
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import AbsentFilesError, LabelError, ProtgraphError, list_first
from protgraph.featurize.file_cache import cached_fingerprint
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.structure.residues.residues import Residues
from protgraph.task.task import Task
from protgraph.train.resolve import load_dataset, resolve_task
from protgraph.train.user_dataset import check_labels_are_used, find_proteins
from protgraph.wording import count_noun

__all__ = ["DatasetInspection", "inspect_dataset"]


@dataclass(frozen=True)
class DatasetInspection:
    """Result of :func:`inspect_dataset`; ``str`` returns the lines of ``protgraph data inspect``.

    Parameters
    ----------
    description : DatasetDescription
    absent_files : tuple of str
        Files that the table names and that do not exist, with their rows.
    absent_residues : tuple of str
        Residues that the table names and that their files do not have, with their rows.
    unusable : tuple of str
        Proteins that cannot be read or have no label of the task, with the reason.
    """

    description: DatasetDescription
    absent_files: tuple[str, ...] = ()
    absent_residues: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()

    @property
    def has_faults(self) -> bool:
        """True if anything is absent or unusable, a split has no label, or no label column can be used."""
        description = self.description
        has_no_task = bool(description.refused_columns) and not description.tasks
        return has_no_task or bool(self.absent_files or self.absent_residues or self.unusable or self.unlabeled_splits)

    @property
    def unlabeled_splits(self) -> tuple[str, ...]:
        """Splits without a known label, each with its task, e.g. "val of task 'ph'"."""
        tasks = self.description.tasks.items()
        return tuple(
            f"{split} of task {name!r}"
            for name, card in tasks
            for split, own in card.counts.items()
            if own.labeled == 0
        )

    def __str__(self) -> str:
        """Return the description, and each fault in a line."""
        lines = [str(self.description)]
        parts = (("absent file", self.absent_files), ("absent residue", self.absent_residues))
        more = ("unusable protein", self.unusable), ("unlabeled split", self.unlabeled_splits)
        for noun, names in (*parts, *more):
            lines += [f"{count_noun(len(names), noun)}:", *(f"  {name}" for name in names)] if names else []
        return "\n".join(lines)


def inspect_dataset(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
    *,
    labels: Any = None,
    task: str | Task | None = None,
    columns: str | Sequence[str] | None = None,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
) -> DatasetInspection:
    """Describe a dataset as training would use it, and list what is absent or unusable.

    Parameters
    ----------
    dataset, labels, task, columns, kind, unknown, seed, read, cache
        As of :func:`protgraph.train.load_dataset`. Without ``task`` and ``columns``, every label column is described.

    Returns
    -------
    DatasetInspection
        The files of a folder, list or store are read; a registered dataset is described from its card.

    Raises
    ------
    LabelError, DatasetError, UnknownNameError
        The table is invalid, or the requested task or column cannot be used.
    """
    check_kind(kind)
    if isinstance(dataset, GraphStore):
        dataset = dataset.path
    common = {"kind": kind, "unknown": unknown, "seed": seed, "read": read, "cache": cache}
    if isinstance(dataset, Dataset) or (isinstance(dataset, str) and dataset in registry.datasets):
        found = load_dataset(dataset, labels=labels, task=task, columns=columns, **common)
        return DatasetInspection(found.describe(task.name if isinstance(task, Task) else task))
    table = None if labels is None else read_label_table(labels, columns=_names(task, columns))
    try:
        if task is not None or columns is not None:
            data = load_dataset(dataset, labels=table, task=task, columns=columns, **common)
            check_labels_are_used([data])
            return _read_all([data], data.describe(), task)
        return _inspect_columns(dataset, table, kind=kind, unknown=unknown, seed=seed, read=read, cache=cache)
    except AbsentFilesError as e:
        names = tuple(f"{name!r} (row {row})" for name, row in e.rows.items())
        rest = table.without_files(e.rows)
        whole = _describe_table(dataset, table, kind, unknown)
        try:
            found = inspect_dataset(dataset, labels=rest, task=task, columns=columns, **common)
        except ProtgraphError as reason:  # what is left cannot be trained on
            return DatasetInspection(replace(whole, notes=(*whole.notes, f"without absent files: {reason}")), names)
        own = [c.name for c in found.description.columns]
        described = tuple(c for c in whole.columns if task is None or c.name in own)
        refused = {} if own and task is not None else whole.refused_columns
        description = replace(found.description, columns=described, refused_columns=refused)
        return replace(found, description=description, absent_files=names)


def _names(task: str | Task | None, columns: str | Sequence[str] | None) -> list[str]:
    own = [columns] if isinstance(columns, str) else list(columns or ())
    return own if task is None else [*own, task.name if isinstance(task, Task) else task]


def _interpret(table: LabelTable, kind: str | None, unknown: Collection[str] | None) -> tuple[list, dict[str, str]]:
    """Return the label columns that can be used, and the reason of each other column."""
    usable, refused = [], {}
    for name in table.labels:
        try:
            usable.append(interpret_column(table, name, kind=kind, unknown=unknown))
        except LabelError as e:
            refused[name] = _reason(e, table, name)
    return usable, refused


def _reason(error: LabelError, table: LabelTable, column: str) -> str:
    return str(error).removeprefix(f"{table.where}: column {column!r}").removeprefix(":").strip()


def _describe_table(
    dataset: object, table: LabelTable, kind: str | None, unknown: Collection[str] | None
) -> DatasetDescription:
    """Return the description of a table whose files are not all there."""
    columns, refused = _interpret(table, kind, unknown)
    where = f"{table.where}, {count_noun(len(table), 'row')}, {table.format}"
    names = list_first([str(dataset)] if isinstance(dataset, str | Path) else list(map(str, dataset)), 3)
    return DatasetDescription(
        names, "", 0, {}, table=where, columns=tuple(columns), refused_columns=refused, notes=table.notes
    )


def _inspect_columns(
    dataset: Any,
    table: LabelTable | None,
    *,
    kind: str | None,
    unknown: Collection[str] | None,
    seed: int,
    read: ReadOptions | None,
    cache: str | Path | None,
) -> DatasetInspection:
    """Inspect a folder, list or store with every label column of its table, or without a task."""
    read = read or ReadOptions()
    fingerprint = partial(cached_fingerprint, folder=cache_dir(cache), read=read)
    common = {"seed": seed, "fingerprint": fingerprint, "read_options": read}
    source = find_proteins(dataset)
    columns, refused = ([], {}) if table is None else _interpret(table, kind, unknown)
    each = []
    for column in columns:
        own = {"task": column.name, "columns": column.name, "kind": kind, "unknown": unknown}
        try:
            each.append(FolderDataset(source, table, **own, **common))
        except LabelError as e:
            if not str(e).startswith(f"{table.where}: column {column.name!r}"):  # a fault of the files or keys
                raise
            refused[column.name] = _reason(e, table, column.name)
    columns = [column for column in columns if column.name not in refused]
    if not each:
        keys = None if table is None else replace(table, labels=MappingProxyType({}), empty=())
        each = [FolderDataset(source, keys, **common)]
    tasks = {name: card for data in each for name, card in data.card.tasks.items()}
    description = replace(
        each[0].describe(),
        rule=each[0].card.split_rule if len(each) == 1 else "",
        task_rules={data.tasks()[0]: data.card.split_rule for data in each} if len(each) > 1 else {},
        tasks=tasks,
        columns=tuple(columns),
        unused_columns=(),
        refused_columns=refused,
        notes=tuple(dict.fromkeys(note for data in each for note in data.notes)),
        split_notes=(),
    )
    return _read_all(each, description, None)


def _read_all(
    datasets: Sequence[Dataset], description: DatasetDescription, task: str | Task | None
) -> DatasetInspection:
    """Read every protein: list absent residues, and count the labels that a task derives."""
    data = datasets[0]
    name = (data.tasks() or [""])[0] if task is None else task.name if isinstance(task, Task) else task
    name = name if name in data.tasks() else (data.tasks() or [""])[0]
    derives = bool(name) and isinstance(data, FolderDataset) and not data.has_labels
    resolved = resolve_task(task if isinstance(task, Task) else name, data) if derives else None
    absent: list[str] = []
    left_out: list[tuple[str, ResidueLabels, np.ndarray]] = []
    unusable: list[str] = []
    counts: dict[str, SplitCount] = {}
    for example in data.all_examples() if isinstance(data, FolderDataset) else data.examples(name):
        try:
            residues = data.read(example)
            if resolved is not None:
                count = _derived_count(resolved, residues)
                counts[example.split] = counts[example.split] + count if example.split in counts else count
        except (ProtgraphError, OSError, ValueError) as e:
            unusable.append(f"{example.id}: {' '.join(str(e).split())}")
            continue
        own = data.labels(name, example) if name else None
        if isinstance(own, ResidueLabels):
            missing, rows = own.absent(residues), data.rows(example)
            if own.is_whole_sequence(residues):
                left_out += [(own.name, own, missing)] if missing.any() else []
            else:
                absent += [f"{own.name} {own.ids[i]} (row {rows[i]})" for i in np.flatnonzero(missing)]
            for i in np.flatnonzero(own.wrong_types(residues)):
                unusable.append(f"{own.name} {own.ids[i]} (row {rows[i]}): not {own.letters[i]} in the structure")
    if resolved is not None:
        ordered = {split: counts[split] for split in description.splits if split in counts}
        tasks = {name: replace(description.tasks[name], counts=ordered)}
        description = replace(description, tasks=tasks)
    if left_out:
        description = replace(description, notes=(*description.notes, describe_left_out(left_out)))
    return DatasetInspection(description, (), tuple(absent), tuple(unusable))


def _derived_count(task: Task, residues: Residues) -> SplitCount:
    return count_example(task.labels(residues, None, seen=residues, strict=False), task.target, len(residues))
