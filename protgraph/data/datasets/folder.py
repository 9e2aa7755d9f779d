"""User data as a dataset: a folder of structure or FASTA files, with a label table or for a task without label table.

The table has a header. Key columns: ``file`` or ``id`` (file name, with or without suffix; for a FASTA file of several
records, the name of a record, or ``file#record``); ``chain``, ``res_id`` and, if needed, ``ins_code`` for labels per
residue (``chain`` without ``res_id`` selects one chain of a protein); optionally ``split`` or ``cluster``. Every other
column is a label. A table without labels selects files and splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.datasets.folder_index import FolderIndex, index_folder, index_table, label_columns
from protgraph.data.datasets.label_strata import LabelStrata, label_strata
from protgraph.data.datasets.label_table import LabelTable, parse_labels, read_label_table
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels
from protgraph.data.datasets.protein_files import open_folder
from protgraph.data.datasets.split_assignment import SplitAssignment, SplitUnit, assign_random_splits, splits_from_table
from protgraph.data.datasets.splits import FRACTIONS
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError, UnknownNameError, suggest
from protgraph.structure.io.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np

__all__ = ["FolderDataset", "select_columns"]

_FIRST = ("train", "val", "test")  # splits, before others


class FolderDataset(Dataset):
    """Structure or FASTA files of a folder, for one task.

    Each file is one example with all its protein chains. If the table has a column ``chain`` and no ``res_id``, each
    file and chain is one example. Each record of a FASTA file is one example; its residues are numbered from 1, and its
    chain is "A" unless the header specifies another.

    Parameters
    ----------
    folder : str or Path
        Folder of structure and FASTA files; subfolders are not searched.
    labels : str or Path, optional
        Label table; see the module docstring for its columns. Files that are not in the table are not used. Default:
        all files.
    task : str, optional
        A label column of the table. With ``columns`` or ``target``, the name of the task. Default: the name of the
        target, or of the label columns, joined by "+".
    columns : str or sequence of str, optional
        Label column, or several numeric ones that form one task. Default: the column of the name ``task``, or the only
        label column.
    kind : {"classification", "multilabel", "regression"}, optional
        Kind of the labels. Default: classification for text (classes sorted), multilabel if all numbers are 0 or 1,
        regression for other numbers.
    target : Target, optional
        Target of a task that computes its labels from structure or sequence; label columns are ignored.
    fractions : mapping of str to float
        Fractions of the random split, if there is no ``split`` column. Files that share a ``cluster`` or the sequence
        of a chain are assigned to the same split. Labels of the table are balanced over the splits.
    seed : int
        Seed of the random split.
    fingerprint : callable
        Function of a path that returns its :class:`Fingerprint`, e.g. from a cache.
    read_options : ReadOptions, optional
        Chains, model, alternate locations and assembly of all files.

    Attributes
    ----------
    unnamed_files : list of str
        Files of the folder that are not in the table.
    unused_columns : list of str
        Label columns that the task does not use.
    notes : list of str
        Messages for the user: files that are not used, sequences shared between proteins or splits.

    Raises
    ------
    LabelError
        If the table is invalid, refers to absent files, lists a residue or protein twice, or has several label columns
        and neither ``task`` nor ``columns`` selects any.
    UnknownNameError
        If ``task`` or ``columns`` name a column that the table does not have.
    DatasetError
        If the folder has no files, neither a label table nor a ``target`` is given, or the column ``split`` is
        incomplete or contradictory.
    """

    def __init__(
        self,
        folder: str | Path,
        labels: str | Path | None = None,
        *,
        task: str | None = None,
        columns: str | Sequence[str] | None = None,
        kind: str | None = None,
        target: Target | None = None,
        fractions: Mapping[str, float] = FRACTIONS,
        seed: int = 0,
        fingerprint: Callable[[Path], Fingerprint] = fingerprint_file,
        read_options: ReadOptions | None = None,
    ) -> None:
        where = str(labels)
        self.read_options = read_options or ReadOptions()
        if labels is None and target is None:
            raise DatasetError(f"folder {str(folder)!r}: give a label table or the target of a task without one")
        proteins = open_folder(folder, fingerprint=fingerprint)
        index = index_folder(proteins) if labels is None else index_table(proteins, read_label_table(labels), where)
        used = [] if target is not None else select_columns(index.table, task, columns, where)
        task = task or ("+".join(used) if target is None else target.name)
        self._keys, self._values = index.keys, None
        if target is None:
            self._values, kind, classes = parse_labels(index.table, used, kind, where)
            level = "node" if index.is_per_residue else "graph"
            target = Target(task, level, kind, len(classes or used), tuple(classes or used))
        fingerprints = {e.id: proteins.fingerprint(e) for e in index.examples}
        strata = None if self._values is None else label_strata(self._values, target)
        assignment = _assign_splits(index, fingerprints, where, fractions, seed, strata)
        self._examples = [replace(e, split=s) for e, s in zip(index.examples, assignment.splits, strict=True)]
        self._rows = {e.id: rows for e, rows in zip(index.examples, index.rows, strict=True)}
        self.unnamed_files = proteins.unnamed(index.examples)
        self.unused_columns = [c for c in label_columns(index.table) if c not in used]
        unused = [f"{len(self.unnamed_files)} files are not in {where} and are not used"]
        self.notes = [*(unused if self.unnamed_files else ()), *assignment.notes]
        counts, name = _counts(self._examples), proteins.path.resolve().name
        source = f"from {where}" if used else "computed from the structures or sequences"
        files = "all files of the folder" if labels is None else f"all files in {where}"
        version = _version(self._examples, fingerprints, labels, self.read_options)
        tasks = {task: TaskCard(target, source, files, counts)}
        self.card = DatasetCard(name, version, "", "", "files of a folder", assignment.rule, counts, tasks)

    @property
    def has_labels(self) -> bool:
        """True if the labels are from the table."""
        return self._values is not None

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [e for e in self._examples if split in (None, e.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None if the task computes them."""
        self._task(task)
        if self._values is None:
            return None
        rows = self._rows[example.id]
        if not self._keys:
            return ProteinLabels(self._values[rows[0]])
        return ResidueLabels(*(key[rows] for key in self._keys), self._values[rows], name=example.path.name)


def select_columns(table: LabelTable, task: str | None, columns: str | Sequence[str] | None, where: str) -> list[str]:
    """Return the label columns of a task.

    Parameters
    ----------
    table : LabelTable
    task : str, optional
        A label column, if ``columns`` is not given.
    columns : str or sequence of str, optional
    where : str
        Name of the table in errors.

    Raises
    ------
    UnknownNameError
        The table has no such label column.
    LabelError
        The table has no label column, or several and none is selected, or ``task`` is a column beside ``columns``.
    """
    available = label_columns(table)
    if not available:
        raise LabelError(f"{where}: no label column. Columns: {', '.join(table)}.")
    chosen = [columns] if isinstance(columns, str) else list(columns or ([task] if task is not None else ()))
    for name in chosen:
        if name not in available:
            hint = suggest(name, available)
            raise UnknownNameError(f"{where}: no label column {name!r}.{hint} Label columns: {', '.join(available)}.")
    if len(chosen) != len(set(chosen)) or (task in available and chosen != [task]):
        raise LabelError(
            f"{where}: task {task!r} of the columns {', '.join(chosen)}. Give each column once, by one name."
        )
    if not chosen and len(available) > 1:
        raise LabelError(
            f"{where} has {len(available)} label columns: {', '.join(available)}. Choose one with --task (task=), or "
            "several numeric ones that form one task with --column for each (columns=)."
        )
    return chosen or available


def _assign_splits(
    index: FolderIndex,
    fingerprints: Mapping[str, Fingerprint],
    where: str,
    fractions: Mapping[str, float],
    seed: int,
    strata: LabelStrata | None,
) -> SplitAssignment:
    """Assign each example to a split. Random splits keep all chains of a file together and balance the labels."""
    table, units = index.table, []
    for example, rows in zip(index.examples, index.rows, strict=True):
        content = fingerprints[example.id].of(_parts(example, fingerprints[example.id]))
        clusters = frozenset(table["cluster"][rows].tolist() if "cluster" in table else ()) - {""}
        counts = () if strata is None else strata.of(rows)
        units.append(SplitUnit(example.id, content.known, clusters, bool(content.sequences), counts))
    if "split" in table:
        return splits_from_table(_splits_in_table(table["split"], index.rows, where), units, where)
    sources = [(example.path, example.record) for example in index.examples]
    merged: dict[tuple[Path, str | None], SplitUnit] = {}
    for source, unit in zip(sources, units, strict=True):
        merged[source] = unit.merge(merged[source]) if source in merged else unit
    assignment = assign_random_splits(list(merged.values()), fractions=fractions, seed=seed, strata=strata)
    split = dict(zip(merged, assignment.splits, strict=True))
    return replace(assignment, splits=tuple(split[source] for source in sources))


def _parts(example: Example, fingerprint: Fingerprint) -> tuple[str, ...] | None:
    """Return the chains or the record of an example in the fingerprint of its file; None for all of it."""
    return example.chains if fingerprint.records is None else (example.record or "",)


def _splits_in_table(column: np.ndarray, rows: Sequence[np.ndarray], where: str) -> list[str]:
    """Return the split of each protein."""
    splits = [sorted(set(column[own].tolist())) for own in rows]
    for own, names in zip(rows, splits, strict=True):
        if names == [""] or len(names) > 1:
            raise DatasetError(f"{where}: the protein of row {own[0] + 1} has the splits {names}; allowed: one")
    return [names[0] for names in splits]


def _version(
    examples: list[Example], fingerprints: Mapping[str, Fingerprint], labels: str | Path | None, read: ReadOptions
) -> str:
    """Return 12 hexadecimal digits that depend on the content of files and table, the splits and the read options."""
    by_id = sorted(examples, key=lambda e: e.id)
    parts = repr([(e.id, e.chains, e.split, e.record, fingerprints[e.id].digest) for e in by_id])
    table = b"" if labels is None else Path(labels).read_bytes()
    options = repr(read.to_dict()) if read != ReadOptions() else ""
    return hashlib.sha256((parts + options).encode() + table).hexdigest()[:12]


def _counts(examples: list[Example]) -> dict[str, SplitCount]:
    """Count the proteins of each split; train, val and test come first."""
    splits = [e.split for e in examples]
    order = [s for s in _FIRST if s in splits] + sorted(set(splits) - set(_FIRST))
    return {split: SplitCount(splits.count(split)) for split in order}
