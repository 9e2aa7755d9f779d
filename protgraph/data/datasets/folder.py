"""User data as a dataset: a folder of structure or FASTA files, with a label table or for a task without label table.

The table has a header. Key columns: ``file`` or ``id`` (file name, with or without suffix; for a FASTA file of several
records, the name of a record, or ``file#record``); ``res_id`` and, if needed, ``chain`` and ``ins_code`` for labels per
residue (``chain`` without ``res_id`` selects one chain of a protein); optionally ``split`` or ``cluster``. Other names
of these are in :data:`protgraph.data.datasets.label_table.KEY_ALIASES`. Every other column is a label. A table without
labels selects files and splits.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, sum_counts
from protgraph.data.datasets.dataset import Example, LabelRows, TableDataset
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.folder_index import FolderIndex, index_folder
from protgraph.data.datasets.label_column import (
    LabelColumn,
    ResidueLetters,
    check_no_label_strings,
    combine_columns,
    find_residue_letters,
    interpret_column,
)
from protgraph.data.datasets.label_table import LabelTable, label_names, read_label_table
from protgraph.data.datasets.labels import SHOWN, count_example
from protgraph.data.datasets.protein_files import ProteinFolder, open_folder
from protgraph.data.datasets.splits import (
    FRACTIONS,
    LabelStrata,
    SplitAssignment,
    SplitUnit,
    assign_random_splits,
    label_strata,
    order_splits,
    splits_from_table,
)
from protgraph.data.datasets.target import Target
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.validation import Seed, check_value
from protgraph.wording import count_noun

__all__ = ["FolderDataset", "FolderLabels", "read_labels"]

_FEW_ROWS = 3  # one for each of train, val and test


@dataclass(frozen=True, eq=False)
class FolderLabels:
    """Label columns of a task as they were understood; without columns, the target of a task that computes labels."""

    task: str = ""  # name of the task; empty without one
    target: Target | None = None
    columns: tuple[LabelColumn, ...] = ()
    # ``(T,)`` classes or ``(T, C)``, labels of the T rows of the table; −1 or NaN for unknown
    values: np.ndarray | None = None
    letters: ResidueLetters | None = None  # residue types that the table has beside the labels

    @property
    def names(self) -> list[str]:
        """Names of the label columns."""
        return [column.name for column in self.columns]

    @property
    def strata(self) -> LabelStrata | None:
        """Strata of the labels, which random splits balance."""
        return None if self.values is None or self.target is None else label_strata(self.values, self.target)

    def __str__(self) -> str:
        """Return one line per column."""
        return "\n".join(map(str, self.columns)) or f"task {self.task or 'none'} without label columns"


class FolderDataset(TableDataset):
    """Structure or FASTA files of a folder, for one task.

    Each file is one example with all its protein chains. If the table has a column ``chain`` and no ``res_id``, each
    file and chain is one example. Each record of a FASTA file is one example; its residues are numbered from 1, and its
    chain is "A" unless the header specifies another.

    Parameters
    ----------
    folder : str, Path, GraphStore, sequence of str or PathLike, ProteinFolder or FolderIndex
        Folder of structure and FASTA files with its subfolders, graph store, or list of files, folders and patterns. An
        index has the table already.
    labels : str, Path or data frame, optional
        Label table (:func:`protgraph.data.datasets.label_table.read_cells`); see the module docstring for its columns.
        Files that are not in the table are not used. Default: all files.
    task : str, optional
        A label column of the table. With ``columns`` or ``target``, the name of the task. Default: the name of the
        target, or of the label columns, joined by "+".
    columns : str or sequence of str, optional
        Label column, or several numeric ones that form one task. Default: the column of the name ``task``, or the only
        label column.
    kind : {"classification", "multilabel", "regression"}, optional
        Kind of the labels. Default: classification for text (classes sorted), multilabel if all numbers are 0 or 1,
        regression for other numbers; see :func:`protgraph.data.datasets.label_column.interpret_column`.
    unknown : collection of str, optional
        Texts that mean an unknown label, besides blank cells.
    classes : sequence of str
        Names and order of the classes; used if they include all classes of the column.
    target : Target, optional
        Target of a task that computes its labels from structure or sequence; label columns are ignored. Without it
        and without label columns the dataset has no task.
    fractions : mapping of str to float
        Fractions of the random split, if there is no ``split`` column. Files that share a ``cluster`` or the sequence
        of a chain are assigned to the same split. Labels of the table are balanced over the splits.
    seed : int
        Seed of the random split.
    leave_out_absent : bool
        Leave out labels of residues that a structure does not have, e.g. unresolved ones. False does so only for labels
        of the whole sequence: every residue of a chain has a label, and the numbers of absent ones continue theirs.
    read_options : ReadOptions, optional
        Chains, model, alternate locations and assembly of all files.

    Attributes
    ----------
    columns : tuple of LabelColumn
        What the label columns of the task were understood as; empty if the task computes its labels.
    unnamed_files : list of str
        Structure and FASTA files of the folder that are not in the table.
    other_files : list of str
        Files of the folder that are neither structure nor FASTA files.
    unused_columns : list of str
        Label columns that the task does not use.
    strata : LabelStrata, optional
        Strata of the labels of the table, which random splits balance.
    notes : list of str
        Messages for the user: names and ignored columns of the table, sequences shared between proteins or splits.

    Raises
    ------
    LabelError
        If the table is invalid, refers to absent files, lists a residue or protein twice, or has several label columns
        and neither ``task`` nor ``columns`` selects any.
    UnknownNameError
        If ``task`` or ``columns`` name a column that the table does not have.
    DatasetError
        If the folder has no files, or the column ``split`` is incomplete or contradictory.
    """

    def __init__(
        self,
        folder: str | Path | GraphStore | Sequence[str | os.PathLike[str]] | ProteinFolder | FolderIndex,
        labels: Any = None,
        *,
        task: str | None = None,
        columns: str | Sequence[str] | None = None,
        kind: str | None = None,
        unknown: Collection[str] | None = None,
        classes: Sequence[str] = (),
        target: Target | None = None,
        fractions: Mapping[str, float] = FRACTIONS,
        seed: int = 0,
        leave_out_absent: bool = False,
        read_options: ReadOptions | None = None,
    ) -> None:
        check_value(seed, Seed, path="seed")
        self.read_options = read_options or ReadOptions()

        # Proteins and table rows: which file each row is for.
        if isinstance(folder, FolderIndex):
            index = folder
        else:
            table = None if labels is None else read_label_table(labels, columns=label_names(task, columns))
            index = index_folder(open_folder(folder), table)
        self.table = index.table

        # Labels: what the columns of the task mean.
        task_labels = read_labels(
            index, task=task, columns=columns, kind=kind, unknown=unknown, classes=classes, target=target
        )
        self.columns, self.strata = task_labels.columns, task_labels.strata
        self._labels: LabelRows | None = None
        if task_labels.values is not None:
            letters = None if task_labels.letters is None else task_labels.letters.codes
            self._labels = LabelRows(task_labels.values, index.rows, index.keys, letters, leave_out_absent)

        # Splits, in which proteins without a known label have no place.
        labeled = _labeled_examples(index, task_labels.values)
        units = {example.id: _split_unit(index, example, self.strata) for example in labeled}
        assignment = _assign_splits(index, labeled, units, fractions=fractions, seed=seed, strata=self.strata)
        self._index, self._units, self._split_notes = index, units, assignment.notes
        self._examples = [replace(e, split=s) for e, s in zip(labeled, assignment.splits, strict=True)]
        self._unlabeled = [example for example in index.examples if example.id not in units]

        # Description: what does not take part, and the counts of the card.
        self.unnamed_files = index.proteins.unnamed((e.path, e.record) for e in index.examples)
        self.other_files = index.proteins.other_files()
        self.unused_columns = _unused_columns(index.table, task_labels)
        table_notes = () if index.table is None else index.table.notes
        label_notes = _label_notes(index, task_labels, self._unlabeled)
        self.notes = [*table_notes, *index.notes, *assignment.notes, *label_notes]
        self.card = _make_card(index, task_labels, self._examples, assignment.rule, self.read_options)

    def describe(self, task: str | None = None) -> DatasetDescription:
        """Return files, labels as they were understood, splits and counts; see :meth:`Dataset.describe`."""
        where, level = "", "residue" if self._index.is_per_residue else "protein"
        if self.table is not None:
            where = f"{self.table.where}, {count_noun(len(self.table), 'row')}, one per {level}, {self.table.format}"
        left_out = dict.fromkeys(self.unnamed_files, "not in the table")
        left_out |= dict.fromkeys(self.other_files, "neither structure nor FASTA")
        not_used = sum(self._index.is_readable(example) for example in self._unlabeled)
        described = super().describe(task)
        return replace(
            described,
            proteins=described.proteins + not_used,
            files=_describe_files(self._index),
            left_out=left_out,
            table=where,
            columns=self.columns,
            unused_columns=tuple(self.unused_columns),
            notes=tuple(note for note in self.notes if note not in self._split_notes),
            split_notes=self._split_notes,
        )

    def rows(self, example: Example) -> np.ndarray:
        """Return the row numbers ``(R,)`` int64 of the label table of an example, in the order of its labels."""
        return np.zeros(0, np.int64) if self.table is None else self.table.rows[self._index.rows[example.id]]

    @property
    def has_labels(self) -> bool:
        """True if the labels are from the table."""
        return self._labels is not None

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [e for e in self._examples if split in (None, e.split)]

    def links(self, example: Example) -> frozenset[str]:
        """Return the file of an example, its clusters in the table, and the digests of its sequences."""
        unit = self._units[example.id]
        links = {f"file {example.path} {example.record or ''}", *(f"cluster {name}" for name in unit.clusters)}
        return frozenset(links | unit.sequences)

    def label_counts(self, example: Example) -> tuple[int, ...]:
        """Return the label counts of an example in each stratum of ``strata``; zeros without a known label."""
        unit = self._units.get(example.id)
        return unit.counts if unit is not None else (0,) * (0 if self.strata is None else len(self.strata.required))

    def all_examples(self) -> list[Example]:
        """Return all examples; a dataset without a task has them as well, and so have those without a known label."""
        return [*self._examples, *self._unlabeled]

    def label_rows(self, task: str) -> LabelRows | None:
        """Return the labels of all examples; None if the task computes them."""
        return self._labels


def read_labels(
    index: FolderIndex,
    *,
    task: str | None = None,
    columns: str | Sequence[str] | None = None,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    classes: Sequence[str] = (),
    target: Target | None = None,
) -> FolderLabels:
    """Interpret the label columns of a task; the arguments are those of :class:`FolderDataset`."""
    table = index.table
    if target is not None:
        return FolderLabels(task or target.name, target)
    if table is None or (not table.has_labels and not task and not columns):
        return FolderLabels()
    names = table.select(task, columns)
    letters = None
    if index.is_per_residue:
        letters = find_residue_letters(table, names)
    else:
        lengths = index.lengths_of_rows()
        for name in names:
            check_no_label_strings(table, name, lengths)
    interpreted = tuple(
        interpret_column(table, name, kind=kind, unknown=unknown, classes=classes, is_alone=len(names) == 1)
        for name in names
    )
    values, task_kind, class_names = combine_columns(interpreted, table.where)
    value_names = tuple(class_names or names)
    target = Target(task or "+".join(names), index.level, task_kind, len(value_names), value_names)
    return FolderLabels(target.name, target, interpreted, values, letters)


def _labeled_examples(index: FolderIndex, values: np.ndarray | None) -> list[Example]:
    """Return the examples with a known label in ``values (T, …)``.

    All examples stay if the table has their splits, which are then the user's, or if the task computes its labels.
    """
    if values is None or index.table is None or "split" in index.table.keys:
        return list(index.examples)
    is_known = values >= 0 if values.dtype.kind == "i" else ~np.isnan(values).all(1)
    return [example for example in index.examples if is_known[index.rows[example.id]].any()]


def _split_unit(index: FolderIndex, example: Example, strata: LabelStrata | None) -> SplitUnit:
    """Return the sequences, clusters and label counts of an example."""
    rows, content = index.rows[example.id], index.contents[example.id]
    column = None if index.table is None else index.table.keys.get("cluster")
    clusters: frozenset[str] = frozenset() if column is None else frozenset(column[rows].tolist()) - {""}
    counts = () if strata is None else strata.of(rows)
    return SplitUnit(example.id, content.known, clusters, index.is_readable(example), counts)


def _assign_splits(
    index: FolderIndex,
    examples: Sequence[Example],
    units: Mapping[str, SplitUnit],
    *,
    fractions: Mapping[str, float],
    seed: int,
    strata: LabelStrata | None,
) -> SplitAssignment:
    """Assign each example to a split. Random splits keep all chains of a file together and balance the labels."""
    table = index.table
    if table is not None and "split" in table.keys:
        splits = [_split_in_table(table, index.rows[example.id]) for example in examples]
        return splits_from_table(splits, list(units.values()), table.where)
    sources = [(example.path, example.record) for example in examples]
    merged: dict[tuple[Path, str | None], SplitUnit] = {}
    for source, unit in zip(sources, units.values(), strict=True):
        merged[source] = unit.merge(merged[source]) if source in merged else unit
    assignment = assign_random_splits(list(merged.values()), fractions=fractions, seed=seed, strata=strata)
    split_of = dict(zip(merged, assignment.splits, strict=True))
    return replace(assignment, splits=tuple(split_of[source] for source in sources))


def _split_in_table(table: LabelTable, rows: np.ndarray) -> str:
    """Return the split of a protein with these rows."""
    names = sorted(set(table.keys["split"][rows].tolist()))
    if names == [""] or len(names) > 1:
        raise DatasetError(
            f"{table.where}: the protein of row {table.rows[rows[0]]} has the splits {names}; allowed: one"
        )
    return names[0]


def _make_card(
    index: FolderIndex, labels: FolderLabels, examples: Sequence[Example], rule: str, read: ReadOptions
) -> DatasetCard:
    """Return the card, with counts from fingerprints and table rows: no file is read again."""
    counts = sum_counts((example.split, _count(index, labels, example)) for example in examples)
    counts = {name: counts[name] for name in order_splits(counts)}
    sizes = {split: SplitCount(count.proteins, count.residues) for split, count in counts.items()}
    where = "" if index.table is None else index.table.where
    tasks = {}
    if labels.target is not None:
        source = f"from {where}" if labels.columns else "computed from the structures or sequences"
        files = "all files of the folder" if index.table is None else f"all files in {where}"
        tasks[labels.task] = TaskCard(labels.target, source, files, counts)
    name = index.proteins.path.resolve().name
    version = _version(index, examples, read)
    return DatasetCard(name, version, "", "", "files of a folder", rule, sizes, tasks)


def _count(index: FolderIndex, labels: FolderLabels, example: Example) -> SplitCount:
    """Count residues and known labels of an example; a protein that cannot be read is not counted."""
    residues = sum(index.contents[example.id].lengths.values())
    count = SplitCount(1, residues)
    is_readable = index.is_readable(example)
    if labels.values is not None and labels.target is not None:
        rows = index.rows[example.id] if index.is_per_residue else index.rows[example.id][:1]
        count = count_example(labels.values[rows if is_readable else rows[:0]], labels.target, residues)
    return count if is_readable else replace(count, proteins=0)


def _version(index: FolderIndex, examples: Sequence[Example], read: ReadOptions) -> str:
    """Return 12 hexadecimal digits that depend on the content of files and table, the splits and the read options."""
    by_id = sorted(examples, key=lambda e: e.id)
    content = repr([(e.id, e.chains, e.split, e.record, index.contents[e.id].digest) for e in by_id])
    options = repr(read.to_dict()) if read != ReadOptions() else ""
    digest = "" if index.table is None else index.table.digest
    return hashlib.sha256((content + options + digest).encode()).hexdigest()[:12]


def _unused_columns(table: LabelTable | None, labels: FolderLabels) -> list[str]:
    """Return the label columns that the task does not use."""
    if table is None:
        return []
    used = [*labels.names, *([] if labels.letters is None else [labels.letters.column])]
    return [name for name in table.labels if name not in used]


def _label_notes(index: FolderIndex, labels: FolderLabels, unlabeled: Sequence[Example]) -> list[str]:
    """Return the messages on residue types, proteins without a label, rare classes and unreadable proteins."""
    notes = []
    if labels.letters is not None:
        notes.append(f"column {labels.letters.column!r} is compared with the residue types of the structures")
    if unlabeled:
        verb, names = "has" if len(unlabeled) == 1 else "have", list_first([e.id for e in unlabeled], SHOWN)
        number = f"{len(unlabeled)} of {len(index.examples)} proteins"
        notes.append(f"{number} {verb} no label of {' and '.join(labels.names)}, not used: {names}")
    for column in labels.columns:
        rare = [f"{name} {number}" for name, number in column.classes.items() if 0 < number < _FEW_ROWS]
        if rare:
            notes.append(f"{column.name}: classes with fewer than {_FEW_ROWS} rows: {list_first(rare, SHOWN)}")
    unreadable = sum(not index.is_readable(example) for example in index.examples)
    if unreadable:
        notes.append(f"{count_noun(unreadable, 'protein')} cannot be read and will not be used")
    return notes


def _describe_files(index: FolderIndex) -> str:
    """Return the number of files that take part, and of those in subfolders."""
    used = {(example.path, example.record) for example in index.examples}
    groups = index.proteins.groups([example.path.name for example in index.examples])
    files = []
    for name, proteins in groups.items():
        if any(protein.location in used for protein in proteins):
            files.append(name)
    text = count_noun(len(files), "file")
    below = sum("/" in name for name in files)
    if below:
        text += f", {below} of them in subfolders"
    return text
