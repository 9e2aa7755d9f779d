"""Inspection of a dataset before training: description, and the faults that training would meet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from protgraph.data.datasets.card import SplitCount, TaskCard, count_example, sum_counts
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.folder_index import index_folder
from protgraph.data.datasets.graph_list import are_graphs
from protgraph.data.datasets.label_column import LabelColumn, check_kind, interpret_column
from protgraph.data.datasets.label_table import LabelTable, label_names, read_label_table
from protgraph.data.datasets.labels import AbsentLabels, ResidueLabels, describe_left_out
from protgraph.data.datasets.protein_files import ProteinFolder, open_folder
from protgraph.errors import DatasetError, LabelError, ProtgraphError, list_first
from protgraph.labels.loading import (
    DatasetSource,
    LabelSelection,
    cached_fingerprints,
    check_labels_are_used,
    is_registered_dataset,
    load_dataset,
    resolve_task,
    select_labels,
)
from protgraph.structure.io import ReadOptions
from protgraph.structure.residues.residues import Residues
from protgraph.task.task import Task
from protgraph.wording import count_noun

__all__ = ["DatasetInspection", "inspect_dataset"]


@dataclass(frozen=True)
class DatasetInspection:
    """Result of :func:`inspect_dataset`; ``str`` returns the lines of ``protgraph data inspect``.

    Parameters
    ----------
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
        unlabeled = []
        for name, card in self.description.tasks.items():
            for split, count in card.counts.items():
                if count.labeled == 0:
                    unlabeled.append(f"{split} of task {name!r}")
        return tuple(unlabeled)

    def __str__(self) -> str:
        """Return the description, and each fault in a line."""
        lines = [str(self.description)]
        faults = {
            "absent file": self.absent_files,
            "absent residue": self.absent_residues,
            "unusable protein": self.unusable,
            "unlabeled split": self.unlabeled_splits,
        }
        for noun, names in faults.items():
            if names:
                lines.append(f"{count_noun(len(names), noun)}:")
                lines += [f"  {name}" for name in names]
        return "\n".join(lines)


def inspect_dataset(
    dataset: DatasetSource,
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
        As of :func:`protgraph.labels.load_dataset`. Without ``task`` and ``columns``, every label column is described.

    Returns
    -------
    DatasetInspection
        The files of a folder, list or store are read; a registered dataset and a list of graphs are described from
        their cards.

    Raises
    ------
    LabelError, DatasetError, UnknownNameError
        The table is invalid, or the requested task or column cannot be used.
    """
    check_kind(kind)
    name = task.name if isinstance(task, Task) else task
    if is_registered_dataset(dataset) or are_graphs(dataset):
        known = load_dataset(
            dataset, labels=labels, task=task, columns=columns, kind=kind, unknown=unknown, seed=seed, read=read
        )
        return DatasetInspection(known.describe(name))

    # Table: what the task reads of it; names of tasks and columns are checked before the files are read.
    options = _Options(kind, unknown, seed, read or ReadOptions())
    proteins = open_folder(dataset, fingerprint=cached_fingerprints(options.read_options, cache))
    table = None if labels is None else read_label_table(labels, columns=label_names(name, columns))
    is_selected = task is not None or columns is not None

    # Files: rows of absent ones are faults, and the others are inspected without them.
    def inspect(present: LabelTable | None) -> DatasetInspection:
        if not is_selected:
            return _inspect_columns(proteins, present, options)
        return _inspect_task(proteins, present, task, columns, options)

    if is_selected:
        _select(proteins, table, task, columns)
    absent = {} if table is None else proteins.match(table).absent
    if table is None or not absent:
        return inspect(table)
    described = _describe_table(proteins, table, options)
    try:
        inspected = inspect(table.without_files(absent))
    except ProtgraphError as reason:  # the rows that are left cannot be trained on
        description = replace(described, notes=(*described.notes, f"without absent files: {reason}"))
        return DatasetInspection(description, _name_absent(absent))
    description = _with_all_rows(inspected.description, described, is_of_task=task is not None)
    return replace(inspected, description=description, absent_files=_name_absent(absent))


def _select(
    proteins: ProteinFolder, table: LabelTable | None, task: str | Task | None, columns: str | Sequence[str] | None
) -> LabelSelection:
    """Return what a task reads of a table; raise if it has no labels."""
    selection = select_labels(table, task, columns)
    if selection.missing:
        raise DatasetError(f"dataset {str(proteins.source)!r}: {selection.missing}")
    return selection


def _with_all_rows(
    description: DatasetDescription, table: DatasetDescription, *, is_of_task: bool
) -> DatasetDescription:
    """Return a description without absent files whose columns are those of the whole table."""
    if not is_of_task:
        return replace(description, columns=table.columns, refused_columns=table.refused_columns)
    used = [column.name for column in description.columns]
    columns = tuple(column for column in table.columns if column.name in used)
    return replace(description, columns=columns, refused_columns={} if used else table.refused_columns)


class _Options(NamedTuple):
    """Arguments of :class:`~protgraph.data.datasets.folder.FolderDataset`: options of reading labels and files."""

    kind: str | None
    unknown: Collection[str] | None
    seed: int
    read_options: ReadOptions


class _TableColumns(NamedTuple):
    """Label columns of a table that can be used, and the reason of each other column."""

    usable: tuple[LabelColumn, ...]
    refused: dict[str, str]


def _interpret(table: LabelTable, options: _Options) -> _TableColumns:
    usable, refused = [], {}
    for name in table.labels:
        try:
            usable.append(interpret_column(table, name, kind=options.kind, unknown=options.unknown))
        except LabelError as e:
            refused[name] = _reason(e, table.where, name)
    return _TableColumns(tuple(usable), refused)


def _reason(error: LabelError, where: str, column: str) -> str:
    return str(error).removeprefix(f"{where}: column {column!r}").removeprefix(":").strip()


def _name_absent(absent: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{name!r} (row {row})" for name, row in absent.items())


def _describe_table(proteins: ProteinFolder, table: LabelTable, options: _Options) -> DatasetDescription:
    columns = _interpret(table, options)
    names = proteins.source if isinstance(proteins.source, list) else [str(proteins.source)]
    return DatasetDescription(
        list_first(names, 3),
        "",
        0,
        {},
        table=f"{table.where}, {count_noun(len(table), 'row')}, {table.format}",
        columns=columns.usable,
        refused_columns=columns.refused,
        notes=table.notes,
    )


def _inspect_task(
    proteins: ProteinFolder,
    table: LabelTable | None,
    task: str | Task | None,
    columns: str | Sequence[str] | None,
    options: _Options,
) -> DatasetInspection:
    selection = _select(proteins, table, task, columns)
    data = FolderDataset(
        proteins,
        table,
        task=selection.task,
        columns=selection.columns,
        classes=selection.classes,
        target=selection.target,
        **options._asdict(),
    )
    check_labels_are_used([data])
    return _read_all(data, data.describe(), task)


def _inspect_columns(proteins: ProteinFolder, table: LabelTable | None, options: _Options) -> DatasetInspection:
    """Inspect proteins with every label column of their table, or without a task."""
    index = index_folder(proteins, table)
    usable, refused = ((), {}) if table is None else _interpret(table, options)
    datasets: dict[str, FolderDataset] = {}
    columns = []
    for column in usable:
        name = column.name
        try:
            datasets[name] = FolderDataset(index, table, task=name, columns=name, **options._asdict())
            columns.append(column)
        except LabelError as e:  # the column cannot be a label of these proteins
            refused[name] = _reason(e, "" if table is None else table.where, name)
    all_data = list(datasets.values())
    if not all_data:
        keys = None if table is None else replace(table, labels=MappingProxyType({}), empty=())
        all_data = [FolderDataset(index, keys, seed=options.seed, read_options=options.read_options)]
    tasks: dict[str, TaskCard] = {}
    notes: dict[str, None] = {}
    for data in all_data:
        tasks |= data.card.tasks
        notes |= dict.fromkeys(data.notes)
    rules = {name: data.card.split_rule for name, data in datasets.items()}
    description = replace(
        all_data[0].describe(),
        rule=all_data[0].card.split_rule if len(all_data) == 1 else "",
        task_rules=rules if len(rules) > 1 else {},
        tasks=tasks,
        columns=tuple(columns),
        unused_columns=(),
        refused_columns=refused,
        notes=tuple(notes),
        split_notes=(),
    )
    return _read_all(all_data[0], description, None)


@dataclass
class _Reading:
    """Findings of reading every protein: faults, labels that are left out, and counts of labels that a task derives."""

    absent: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    left_out: list[AbsentLabels] = field(default_factory=list)
    counts: list[tuple[str, SplitCount]] = field(default_factory=list)

    def compare(self, labels: ResidueLabels, residues: Residues, rows: np.ndarray) -> None:
        """Add the labels of a protein that do not fit its residues; ``rows`` are their rows in the table."""
        missing = labels.absent(residues)
        if labels.is_whole_sequence(residues):
            self.left_out += [(labels.name, labels, missing)] if missing.any() else []
        else:
            self.absent += [f"{labels.name} {labels.ids[i]} (row {rows[i]})" for i in np.flatnonzero(missing)]
        for i in np.flatnonzero(labels.wrong_types(residues)):
            assert labels.letters is not None  # the types of the table
            place = f"{labels.name} {labels.ids[i]} (row {rows[i]})"
            self.unusable.append(f"{place}: not {labels.letters[i]} in the structure")

    def count(self, example: Example, task: Task, residues: Residues) -> None:
        """Count the labels that a task derives from a protein."""
        labels = task.labels(residues, None, seen=residues, strict=False)
        self.counts.append((example.split, count_example(labels, task.target, len(residues))))

    def split_counts(self, splits: Iterable[str]) -> dict[str, SplitCount]:
        """Return the counts of each of these splits that has any."""
        counts = sum_counts(self.counts)
        return {split: counts[split] for split in splits if split in counts}


def _read_all(data: FolderDataset, description: DatasetDescription, task: str | Task | None) -> DatasetInspection:
    """Read every protein: list absent residues, and count the labels that a task derives."""
    name = _described_task(data, task)
    resolved = None
    if name and not data.has_labels:  # the task derives its labels from structures
        resolved = resolve_task(task if isinstance(task, Task) else name, data)
    reading = _Reading()
    for example in data.all_examples():
        try:
            residues = data.read(example)
            if resolved is not None:
                reading.count(example, resolved, residues)
        except (ProtgraphError, OSError, ValueError) as e:
            reading.unusable.append(f"{example.id}: {' '.join(str(e).split())}")
            continue
        labels = data.labels(name, example) if name else None
        if isinstance(labels, ResidueLabels):
            reading.compare(labels, residues, data.rows(example))
    if resolved is not None:
        card = replace(description.tasks[name], counts=reading.split_counts(description.splits))
        description = replace(description, tasks={name: card})
    if reading.left_out:
        description = replace(description, notes=(*description.notes, describe_left_out(reading.left_out)))
    return DatasetInspection(description, (), tuple(reading.absent), tuple(reading.unusable))


def _described_task(data: FolderDataset, task: str | Task | None) -> str:
    """Return the name of a task if the data have it, else that of their first task; "" without any."""
    name = task.name if isinstance(task, Task) else task
    tasks = data.tasks()
    if name in tasks:
        return name
    return tasks[0] if tasks else ""
