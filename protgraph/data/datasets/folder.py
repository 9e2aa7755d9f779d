"""User data as a dataset: a folder of structure or FASTA files, with a label table or for a task without label table.

The table has a header. Key columns: ``file`` or ``id`` (file name, with or without suffix; for a FASTA file of several
records, the name of a record, or ``file#record``); ``res_id`` and, if needed, ``chain`` and ``ins_code`` for labels per
residue (``chain`` without ``res_id`` selects one chain of a protein); optionally ``split`` or ``cluster``. Other names
of these are in :data:`protgraph.data.datasets.table_header.KEY_ALIASES`. Every other column is a label. A table without
labels selects files and splits.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard
from protgraph.data.datasets.column_interpretation import interpret_column
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.description import DatasetDescription
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.datasets.folder_index import FolderIndex, index_folder, index_table
from protgraph.data.datasets.folder_splits import (
    assign_folder_splits,
    count_splits,
    example_content,
    leave_out_unlabeled,
    split_units,
)
from protgraph.data.datasets.label_column import LabelColumn, combine_columns
from protgraph.data.datasets.label_strata import label_strata
from protgraph.data.datasets.label_strings import check_no_label_strings
from protgraph.data.datasets.label_table import LabelTable, read_label_table
from protgraph.data.datasets.labels import SHOWN, Labels, ProteinLabels, ResidueLabels
from protgraph.data.datasets.protein_files import ProteinFolder
from protgraph.data.datasets.protein_folder import open_folder
from protgraph.data.datasets.residue_letters import find_residue_letters
from protgraph.data.datasets.splits import FRACTIONS
from protgraph.data.datasets.target import Target
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.validation import Seed, check_value
from protgraph.wording import count_noun

__all__ = ["FolderDataset"]

_FEW_ROWS = 3  # one for each of train, val and test


class FolderDataset(Dataset):
    """Structure or FASTA files of a folder, for one task.

    Each file is one example with all its protein chains. If the table has a column ``chain`` and no ``res_id``, each
    file and chain is one example. Each record of a FASTA file is one example; its residues are numbered from 1, and its
    chain is "A" unless the header specifies another.

    Parameters
    ----------
    folder : str, Path, GraphStore, or sequence of str or PathLike
        Folder of structure and FASTA files with its subfolders, graph store, or list of files, folders and patterns.
    labels : str, Path or data frame, optional
        Label table (:func:`protgraph.data.datasets.table_reader.read_cells`); see the module docstring for its columns.
        Files that are not in the table are not used. Default: all files.
    task : str, optional
        A label column of the table. With ``columns`` or ``target``, the name of the task. Default: the name of the
        target, or of the label columns, joined by "+".
    columns : str or sequence of str, optional
        Label column, or several numeric ones that form one task. Default: the column of the name ``task``, or the only
        label column.
    kind : {"classification", "multilabel", "regression"}, optional
        Kind of the labels. Default: classification for text (classes sorted), multilabel if all numbers are 0 or 1,
        regression for other numbers; see :func:`protgraph.data.datasets.column_interpretation.interpret_column`.
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
    fingerprint : callable
        Function of a path that returns its :class:`Fingerprint`, e.g. from a cache.
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
    table : LabelTable, optional
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
        folder: str | Path | GraphStore | Sequence[str | os.PathLike[str]],
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
        fingerprint: Callable[[Path], Fingerprint] = fingerprint_file,
        read_options: ReadOptions | None = None,
    ) -> None:
        check_value(seed, Seed, path="seed")
        self.read_options = read_options or ReadOptions()
        selected = [columns] if isinstance(columns, str) else list(columns or ())
        table = None if labels is None else read_label_table(labels, columns=[*selected, *([task] if task else ())])
        proteins = open_folder(folder, fingerprint=fingerprint)
        index = index_folder(proteins) if table is None else index_table(proteins, table)
        used: list[str] = []
        if table is not None and target is None and (table.labels or table.empty or task or columns):
            used = table.select(task, columns)
        fingerprints = {e.id: proteins.fingerprint(e.path, e.record) for e in index.examples}
        if not index.is_per_residue:
            residues = _residues_of_rows(index, fingerprints)
            for name in used:
                check_no_label_strings(table, name, residues)
        self.table, self._keys, self._values = table, index.keys, None
        self._leave_out_absent = leave_out_absent
        letters = find_residue_letters(table, used) if index.is_per_residue and used else None
        self._letters = None if letters is None else letters.codes
        self.columns: tuple[LabelColumn, ...] = ()
        if table is not None and used:
            options = {"kind": kind, "unknown": unknown, "classes": classes, "is_alone": len(used) == 1}
            self.columns = tuple(interpret_column(table, name, **options) for name in used)
            self._values, kind, names = combine_columns(self.columns, table.where)
            level = "node" if index.is_per_residue else "graph"
            target = Target(task or "+".join(used), level, kind, len(names or used), tuple(names or used))
        every, left_out = index, []
        if self._values is not None:
            index, left_out = leave_out_unlabeled(index, self._values)
        self._unlabeled = [every.examples[i] for i in left_out]
        strata = None if self._values is None or target is None else label_strata(self._values, target)
        units = split_units(index, fingerprints, strata)
        assignment = assign_folder_splits(index, units, fractions=fractions, seed=seed, strata=strata)
        self._examples = [replace(e, split=s) for e, s in zip(index.examples, assignment.splits, strict=True)]
        self._units, self.strata = {e.id: unit for e, unit in zip(index.examples, units, strict=True)}, strata
        self._rows = {e.id: rows for e, rows in zip(every.examples, every.rows, strict=True)}
        self.unnamed_files = proteins.unnamed((e.path, e.record) for e in every.examples)
        self.other_files = proteins.other_files()
        known = used if letters is None else [*used, letters.column]
        self.unused_columns = [c for c in table.labels if c not in known] if table is not None else []
        self.notes = [*(() if table is None else table.notes), *index.notes, *assignment.notes]
        if letters is not None:
            self.notes.append(f"column {letters.column!r} is compared with the residue types of the structures")
        self._split_notes = tuple(assignment.notes)
        self.notes += _note_unlabeled(self._unlabeled, len(every.examples), used)
        self.notes += [note for column in self.columns for note in _note_rare(column)]
        self._files = _describe_files(proteins, every)
        unreadable = sum(not example_content(e, fingerprints[e.id]).sequences for e in every.examples)
        self.notes += [f"{count_noun(unreadable, 'protein')} cannot be read and will not be used"] if unreadable else []
        self._not_used = sum(bool(example_content(e, fingerprints[e.id]).sequences) for e in self._unlabeled)
        version = _version(self._examples, fingerprints, table, self.read_options)
        counts = count_splits(index, assignment.splits, fingerprints, self._values, target)
        sizes = {split: SplitCount(count.proteins, count.residues) for split, count in counts.items()}
        where = "" if table is None else table.where
        tasks = {}
        if target is not None:
            source = f"from {where}" if used else "computed from the structures or sequences"
            files = "all files of the folder" if table is None else f"all files in {where}"
            tasks[task or target.name] = TaskCard(target, source, files, counts)
        name = proteins.path.resolve().name
        self.card = DatasetCard(name, version, "", "", "files of a folder", assignment.rule, sizes, tasks)

    def describe(self, task: str | None = None) -> DatasetDescription:
        """Return files, labels as they were understood, splits and counts; see :meth:`Dataset.describe`."""
        where, level = "", "residue" if self._keys else "protein"
        if self.table is not None:
            where = f"{self.table.where}, {count_noun(len(self.table), 'row')}, one per {level}, {self.table.format}"
        left_out = dict.fromkeys(self.unnamed_files, "not in the table")
        left_out |= dict.fromkeys(self.other_files, "neither structure nor FASTA")
        described = super().describe(task)
        return replace(
            described,
            proteins=described.proteins + self._not_used,
            files=self._files,
            left_out=left_out,
            table=where,
            columns=self.columns,
            unused_columns=tuple(self.unused_columns),
            notes=tuple(note for note in self.notes if note not in self._split_notes),
            split_notes=self._split_notes,
        )

    def rows(self, example: Example) -> np.ndarray:
        """Return the row numbers ``(R,)`` int64 of the label table of an example, in the order of its labels."""
        return np.zeros(0, np.int64) if self.table is None else self.table.rows[self._rows[example.id]]

    @property
    def has_labels(self) -> bool:
        """True if the labels are from the table."""
        return self._values is not None

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

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None if the task computes them."""
        self._task(task)
        if self._values is None:
            return None
        rows = self._rows[example.id]
        if not self._keys:
            return ProteinLabels(self._values[rows[0]])
        return ResidueLabels(
            *(key[rows] for key in self._keys),
            self._values[rows],
            name=example.path.name,
            letters=None if self._letters is None else self._letters[rows],
            leaves_out_absent=self._leave_out_absent,
        )


def _residues_of_rows(index: FolderIndex, fingerprints: Mapping[str, Fingerprint]) -> list[list[int]]:
    """Return the numbers of residues of the chains of each row's protein; empty if it cannot be read."""
    found: list[list[int]] = [[] for _ in range(sum(map(len, index.rows)))]
    for example, rows in zip(index.examples, index.rows, strict=True):
        for row in rows.tolist():
            found[row] = list(example_content(example, fingerprints[example.id]).lengths.values())
    return found


def _version(
    examples: list[Example], fingerprints: Mapping[str, Fingerprint], table: LabelTable | None, read: ReadOptions
) -> str:
    """Return 12 hexadecimal digits that depend on the content of files and table, the splits and the read options."""
    by_id = sorted(examples, key=lambda e: e.id)
    parts = repr([(e.id, e.chains, e.split, e.record, fingerprints[e.id].digest) for e in by_id])
    options = repr(read.to_dict()) if read != ReadOptions() else ""
    return hashlib.sha256((parts + options + ("" if table is None else table.digest)).encode()).hexdigest()[:12]


def _note_unlabeled(examples: Sequence[Example], number: int, columns: Sequence[str]) -> list[str]:
    """Return the note on proteins that are in no split because they have no label."""
    if not examples:
        return []
    verb, names = "has" if len(examples) == 1 else "have", list_first([e.id for e in examples], SHOWN)
    return [f"{len(examples)} of {number} proteins {verb} no label of {' and '.join(columns)}, not used: {names}"]


def _note_rare(column: LabelColumn) -> list[str]:
    """Return a note on the classes that too few rows have to be in every split."""
    rare = [f"{name} {number}" for name, number in column.classes.items() if 0 < number < _FEW_ROWS]
    return [f"{column.name}: classes with fewer than {_FEW_ROWS} rows: {list_first(rare, SHOWN)}"] if rare else []


def _describe_files(proteins: ProteinFolder, index: FolderIndex) -> str:
    """Return the number of files that take part, and of those in subfolders."""
    used = {(example.path, example.record) for example in index.examples}
    groups = proteins.groups([example.path.name for example in index.examples])
    files = [name for name, group in groups.items() if any(protein.location in used for protein in group)]
    below = sum("/" in name for name in files)
    return count_noun(len(files), "file") + (f", {below} of them in subfolders" if below else "")
