"""A user's own data: a folder of structure or FASTA files, with a table of labels or for a task that needs none.

The table has a header. Columns: ``file`` (or ``id``: the file's name, with or without its suffix; of a FASTA file of
several records, a record's name, or the file's with "#" and that); ``chain``, ``res_id`` and, where there are any,
``ins_code`` for labels per residue (``chain`` alone narrows a protein to one chain); ``split`` or ``cluster``, if
wanted. Every other column is a label. Without any, the table says which files take part, and how they are divided.
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
from protgraph.data.datasets.label_table import LabelTable, read_label_table, read_values
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels
from protgraph.data.datasets.protein_files import open_folder
from protgraph.data.datasets.split_assignment import SplitAssignment, SplitUnit, assign_random_splits, splits_from_table
from protgraph.data.datasets.splits import FRACTIONS
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError
from protgraph.structure.io.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np

__all__ = ["FolderDataset"]

USUAL = ("train", "val", "test")


class FolderDataset(Dataset):
    """Structure or FASTA files of a folder for one task.

    Labels per residue, and a task that finds its labels itself, make one graph a file, of all its protein chains;
    labels per protein one graph a file. Where the table has a ``chain`` column (and no ``res_id``), it is one a file
    and chain. A record of a FASTA file is as good as a file; its residues are numbered from 1, and its chain is "A"
    unless its header names another.

    Parameters
    ----------
    folder : str or Path
        Structure and FASTA files, not searched below.
    labels : str or Path, optional
        The table; see the module for its columns. Files that it does not name take no part; without a table all do.
    task : str
        What to call the task.
    columns : sequence of str, optional
        Label columns; by default every column that is no key.
    kind : {"classification", "multilabel", "regression"}, optional
        What the labels are. By default texts are classes in sorted order, numbers that are all 0 or 1 are yes/no
        labels, and other numbers are values.
    target : Target, optional
        What a task that finds its labels in the structure or sequence asks for; label columns are left alone then.
    fractions, seed
        Of the random split, where there is no ``split`` column. It divides files; those that share a ``cluster`` or
        the sequence of a chain stay together.
    read_options : ReadOptions, optional
        Chains, model, alternate locations and assembly of every file.
    look : callable
        Gives what a file holds; one that remembers spares time.

    Attributes
    ----------
    unnamed_files : list of str
        Files of the folder that the table does not name.
    unused_columns : list of str
        Label columns of the table that this task leaves alone.
    notes : list of str
        What whoever uses it should know: files that take no part, and sequences that proteins share.

    Raises
    ------
    LabelError
        The table cannot be understood, or names absent files, or one residue or protein twice.
    DatasetError
        The folder holds nothing; there is neither a table of labels nor a ``target``; the ``split`` column is
        incomplete or contradicts itself.
    """

    def __init__(
        self,
        folder: str | Path,
        labels: str | Path | None = None,
        *,
        task: str = "labels",
        columns: Sequence[str] | None = None,
        kind: str | None = None,
        target: Target | None = None,
        fractions: Mapping[str, float] = FRACTIONS,
        seed: int = 0,
        look: Callable[[Path], Fingerprint] = fingerprint_file,
        read_options: ReadOptions | None = None,
    ) -> None:
        where = str(labels)
        self.read_options = read_options or ReadOptions()
        if labels is None and target is None:
            raise DatasetError(f"folder {str(folder)!r}: give a table of labels, or a target that needs none")
        proteins = open_folder(folder, look=look)
        members = index_folder(proteins) if labels is None else index_table(proteins, read_label_table(labels), where)
        given = [] if target is not None else _chosen(members.table, columns, where)
        self._keys, self._values = members.keys, None
        if target is None:
            self._values, made, classes = read_values(members.table, given, kind, where)
            level = "node" if members.per_residue else "graph"
            target = Target(task, level, made, len(classes or given), tuple(classes or given))
        prints = {e.id: proteins.fingerprint(e) for e in members.examples}
        division = _divide(members, prints, where, fractions, seed)
        self._examples = [replace(e, split=s) for e, s in zip(members.examples, division.splits, strict=True)]
        self._rows = {e.id: own for e, own in zip(members.examples, members.rows, strict=True)}
        self.unnamed_files = proteins.unnamed(members.examples)
        self.unused_columns = [c for c in label_columns(members.table) if c not in given]
        out = [f"{len(self.unnamed_files)} files are not named in {where} and take no part"]
        self.notes = [*(out if self.unnamed_files else ()), *division.notes]
        version = _version(self._examples, prints, labels, self.read_options)
        counts = _counts(self._examples)
        source = f"from {where}" if given else "found in the structures or sequences themselves"
        who = "every file of the folder" if labels is None else f"every file that {where} names"
        tasks = {task: TaskCard(target, source, who, counts)}
        self.card = DatasetCard(proteins.path.resolve().name, version, "", "", "files of a folder", division.rule, counts, tasks)

    @property
    def has_labels(self) -> bool:
        """Whether labels are of the table."""
        return self._values is not None

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        self._task(task)
        return [e for e in self._examples if split in (None, e.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        self._task(task)
        if self._values is None:
            return None
        rows = self._rows[example.id]
        if not self._keys:
            return ProteinLabels(self._values[rows[0]])
        return ResidueLabels(*(key[rows] for key in self._keys), self._values[rows], name=example.path.name)


def _chosen(table: LabelTable, columns: Sequence[str] | None, where: str) -> list[str]:
    free = label_columns(table)
    missing = [c for c in columns or () if c not in free]
    if missing or not free:
        what = f"no label column {missing[0]!r}" if missing else "no label column"
        raise LabelError(f"{where}: {what}; its columns are {', '.join(table)}")
    return free if columns is None else list(columns)


def _divide(
    members: FolderIndex, prints: Mapping[str, Fingerprint], where: str, fractions: Mapping[str, float], seed: int
) -> SplitAssignment:
    """The split of each example. At random, all chains of a file or record go one way."""
    table, tied = members.table, []
    for example, own in zip(members.examples, members.rows, strict=True):
        content = prints[example.id].of(_parts(example, prints[example.id]))
        clusters = frozenset(table["cluster"][own].tolist() if "cluster" in table else ()) - {""}
        tied.append(SplitUnit(example.id, content.known, clusters, bool(content.sequences)))
    if "split" in table:
        return splits_from_table(_given(table["split"], members.rows, where), tied, where)
    places = [(example.path, example.record) for example in members.examples]
    whole: dict[tuple[Path, str | None], SplitUnit] = {}
    for place, one in zip(places, tied, strict=True):
        whole[place] = one.joined(whole[place]) if place in whole else one
    division = assign_random_splits(list(whole.values()), fractions=fractions, seed=seed)
    split = dict(zip(whole, division.splits, strict=True))
    return replace(division, splits=tuple(split[place] for place in places))


def _parts(example: Example, fingerprint: Fingerprint) -> tuple[str, ...] | None:
    """Return the chains or the record of an example in the fingerprint of its file; None for all of it."""
    return example.chains if fingerprint.records is None else (example.record or "",)


def _given(column: np.ndarray, rows: Sequence[np.ndarray], where: str) -> list[str]:
    """The one split of each protein."""
    found = [sorted(set(column[own].tolist())) for own in rows]
    for own, names in zip(rows, found, strict=True):
        if names == [""] or len(names) > 1:
            raise DatasetError(f"{where}: the protein of row {own[0] + 1} has the splits {names}; it needs exactly one")
    return [names[0] for names in found]


def _version(
    examples: list[Example], prints: Mapping[str, Fingerprint], labels: str | Path | None, read: ReadOptions
) -> str:
    """12 hexadecimal digits that change with the bytes of the files, the splits, or the bytes of the table."""
    told = [(e.id, e.chains, e.split, e.record, prints[e.id].digest) for e in sorted(examples, key=lambda e: e.id)]
    table = b"" if labels is None else Path(labels).read_bytes()
    chosen = repr(read.to_dict()) if read != ReadOptions() else ""
    return hashlib.sha256((repr(told) + chosen).encode() + table).hexdigest()[:12]


def _counts(examples: list[Example]) -> dict[str, SplitCount]:
    """How many proteins each split has, the usual splits first."""
    held = [e.split for e in examples]
    order = [s for s in USUAL if s in held] + sorted(set(held) - set(USUAL))
    return {split: SplitCount(held.count(split)) for split in order}
