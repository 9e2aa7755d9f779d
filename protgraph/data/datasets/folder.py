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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, count_example, sum_counts
from protgraph.data.datasets.dataset import Example, LabelRows, TableDataset
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.folder_index import FolderIndex, check_no_label_strings, index_folder
from protgraph.data.datasets.label_column import FolderLabels, read_labels
from protgraph.data.datasets.label_table import LabelTable, label_names, read_label_table
from protgraph.data.datasets.labels import SHOWN
from protgraph.data.datasets.protein_files import ProteinFolder, open_folder
from protgraph.data.datasets.splits import (
    FRACTIONS,
    LabelStrata,
    SplitAssignment,
    SplitUnit,
    assign_random_splits,
    order_splits,
    splits_from_table,
)
from protgraph.data.datasets.target import Target
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.validation import Seed, check_value
from protgraph.wording import count_noun

__all__ = ["FolderDataset"]


class FolderDataset(TableDataset):
    """Structure or FASTA files of a folder, for one task.

    Each file is one example with all its protein chains. If the table has a column ``chain`` and no ``res_id``, each
    file and chain is one example. Each record of a FASTA file is one example; its residues are numbered from 1, and its
    chain is "A" unless the header specifies another.

    Parameters
    ----------
    folder : str, Path, GraphStore, sequence of str or PathLike, ProteinFolder or FolderIndex
        Folder of structure and FASTA files with its subfolders, graph store, or list of files, folders and patterns.
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
    strata : LabelStrata, optional
        Strata of the labels of the table, which random splits balance.

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

        # Table and index: the proteins, and which of them each row is for.
        self.table = None if labels is None else read_label_table(labels, columns=label_names(task, columns))
        index = folder if isinstance(folder, FolderIndex) else index_folder(open_folder(folder), self.table)

        # Labels: what the columns of the task mean.
        if target is not None:
            self._task_labels = FolderLabels(task or target.name, target)
        else:
            names = _label_names(index, self.table, task, columns)
            self._task_labels = read_labels(self.table, names, task=task, kind=kind, unknown=unknown, classes=classes)
        self.columns, self.strata = self._task_labels.columns, self._task_labels.strata
        values, letters = self._task_labels.values, self._task_labels.letters
        self._labels: LabelRows | None = None
        if values is not None:
            codes = None if letters is None else letters.codes
            self._labels = LabelRows(values, index.rows, index.keys, codes, leave_out_absent)

        # Splits, in which proteins without a known label have no place.
        labeled = _labeled_examples(index, self.table, values)
        units = {example.id: _split_unit(index, self.table, example, self.strata) for example in labeled}
        assignment = _assign_splits(
            index, self.table, labeled, units, fractions=fractions, seed=seed, strata=self.strata
        )
        self._index, self._units, self._split_notes = index, units, assignment.notes
        self._examples = [replace(e, split=s) for e, s in zip(labeled, assignment.splits, strict=True)]
        self._unlabeled = [example for example in index.examples if example.id not in units]
        self.card = self._make_card(assignment.rule)

    @property
    def unnamed_files(self) -> list[str]:
        """Structure and FASTA files of the folder that are not in the table."""
        return self._index.proteins.unnamed((e.path, e.record) for e in self._index.examples)

    @property
    def other_files(self) -> list[str]:
        """Files of the folder that are neither structure nor FASTA files."""
        return self._index.proteins.other_files()

    @property
    def unused_columns(self) -> list[str]:
        """Label columns that the task does not use."""
        labels = self._task_labels
        used = [*labels.names, *([] if labels.letters is None else [labels.letters.column])]
        return [] if self.table is None else [name for name in self.table.labels if name not in used]

    @property
    def notes(self) -> list[str]:
        """Messages for the user: names of the table, sequences in several proteins or splits, proteins not used."""
        notes = [*(() if self.table is None else self.table.notes), *self._index.notes, *self._split_notes]
        if self._unlabeled:
            verb, names = "has" if len(self._unlabeled) == 1 else "have", [e.id for e in self._unlabeled]
            number = f"{len(self._unlabeled)} of {len(self._index.examples)} proteins"
            labels = " and ".join(self._task_labels.names)
            notes.append(f"{number} {verb} no label of {labels}, not used: {list_first(names, SHOWN)}")
        notes += self._task_labels.notes
        unreadable = sum(not self._index.is_readable(example) for example in self._index.examples)
        if unreadable:
            notes.append(f"{count_noun(unreadable, 'protein')} cannot be read and will not be used")
        return notes

    def describe(self, task: str | None = None) -> DatasetDescription:
        """Return files, labels as they were understood, splits and counts; see :meth:`Dataset.describe`."""
        where = ""
        if self.table is not None:
            level = "residue" if self.table.is_per_residue else "protein"
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

    def _make_card(self, rule: str) -> DatasetCard:
        """Return the card, with counts from fingerprints and table rows: no file is read again."""
        counts = sum_counts((example.split, self._count(example)) for example in self._examples)
        counts = {name: counts[name] for name in order_splits(counts)}
        sizes = {split: SplitCount(count.proteins, count.residues) for split, count in counts.items()}
        where = "" if self.table is None else self.table.where
        tasks = {}
        if self._task_labels.target is not None:
            source = f"from {where}" if self.columns else "computed from the structures or sequences"
            files = f"all files in {where}" if where else "all files of the folder"
            tasks[self._task_labels.task] = TaskCard(self._task_labels.target, source, files, counts)
        name = self._index.proteins.path.resolve().name
        return DatasetCard(name, self._version(), "", "", "files of a folder", rule, sizes, tasks)

    def _count(self, example: Example) -> SplitCount:
        """Count residues and known labels of an example; a protein that cannot be read is not counted."""
        residues = sum(self._index.contents[example.id].lengths.values())
        count = SplitCount(1, residues)
        is_readable = self._index.is_readable(example)
        labels = self._task_labels
        if labels.values is not None and labels.target is not None:
            rows = self._index.rows[example.id]
            if labels.target.level == "graph":
                rows = rows[:1]
            count = count_example(labels.values[rows if is_readable else rows[:0]], labels.target, residues)
        return count if is_readable else replace(count, proteins=0)

    def _version(self) -> str:
        """Return 12 hexadecimal digits that depend on files, table, splits and read options."""
        by_id = sorted(self._examples, key=lambda e: e.id)
        content = repr([(e.id, e.chains, e.split, e.record, self._index.contents[e.id].digest) for e in by_id])
        options = repr(self.read_options.to_dict()) if self.read_options != ReadOptions() else ""
        digest = "" if self.table is None else self.table.digest
        return hashlib.sha256((content + options + digest).encode()).hexdigest()[:12]


def _label_names(
    index: FolderIndex, table: LabelTable | None, task: str | None, columns: str | Sequence[str] | None
) -> list[str]:
    """Return the label columns of a task; raise for cells that have the labels of all residues of a protein."""
    if table is None or not (table.has_labels or task or columns):
        return []
    names = table.select(task, columns)
    if not table.is_per_residue:
        for name in names:
            check_no_label_strings(index, table, name)
    return names


def _labeled_examples(index: FolderIndex, table: LabelTable | None, values: np.ndarray | None) -> list[Example]:
    """Return the examples with a known label in ``values (T, …)``.

    All examples stay if the table has their splits, which are then the user's, or if the task computes its labels.
    """
    if values is None or table is None or "split" in table.keys:
        return list(index.examples)
    is_known = values >= 0 if values.dtype.kind == "i" else ~np.isnan(values).all(1)
    return [example for example in index.examples if is_known[index.rows[example.id]].any()]


def _split_unit(
    index: FolderIndex, table: LabelTable | None, example: Example, strata: LabelStrata | None
) -> SplitUnit:
    """Return the sequences, clusters and label counts of an example."""
    rows, content = index.rows[example.id], index.contents[example.id]
    column = None if table is None else table.keys.get("cluster")
    clusters: frozenset[str] = frozenset() if column is None else frozenset(column[rows].tolist()) - {""}
    counts = () if strata is None else strata.of(rows)
    return SplitUnit(example.id, content.known, clusters, index.is_readable(example), counts)


def _assign_splits(
    index: FolderIndex,
    table: LabelTable | None,
    examples: Sequence[Example],
    units: Mapping[str, SplitUnit],
    *,
    fractions: Mapping[str, float],
    seed: int,
    strata: LabelStrata | None,
) -> SplitAssignment:
    """Assign each example to a split. Random splits keep all chains of a file together and balance the labels."""
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
