"""A user's own data: a folder of structure or FASTA files and one table of labels, per residue or per protein.

The table has a header, and commas, tabs or semicolons between its columns. Columns: ``file`` (or ``id``: the file's
name, with or without its suffix; of a FASTA file of several records, a record's name, or the file's with "#" and that);
``chain``, ``res_id`` and, where there are any, ``ins_code`` for labels per residue (``chain`` alone narrows a label per
protein to one chain); ``split`` or ``cluster``, if wanted. Every other column is a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from protgraph.data.card import Card, Count, TaskCard
from protgraph.data.dataset import Dataset, Example
from protgraph.data.labels import SHOWN, Labels, ProteinLabels, ResidueLabels
from protgraph.data.split import FRACTIONS, connected_groups, group_split
from protgraph.data.table import Table, read_table, read_values, residue_numbers
from protgraph.data.target import Target
from protgraph.errors import DatasetError, LabelError
from protgraph.structure.entry import SUFFIXES, is_protein_file
from protgraph.structure.fasta import is_fasta, read_fasta

__all__ = ["FolderDataset"]

KEYS = ("file", "id", "chain", "res_id", "ins_code", "split", "cluster")
USUAL = ("train", "val", "test")


class _Source(NamedTuple):
    """A structure file, or one record of a FASTA file."""

    path: Path
    record: str | None = None

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.path.name if self.record is None else f"{self.path.name}#{self.record}"

    @property
    def stem(self) -> str:
        """What examples call it, where that is unique."""
        return _stem(self.path) if self.record is None else self.record


class FolderDataset(Dataset):
    """Structure or FASTA files of a folder with labels from a table.

    Labels per residue make one graph a file, of all its protein chains; labels per protein one graph a file, or one
    a file and chain where the table has a ``chain`` column. A record of a FASTA file is as good as a file; its residues
    are numbered from 1, and its chain is "A" unless its header names another.

    Parameters
    ----------
    folder : str or Path
        Structure and FASTA files, not searched below.
    labels : str or Path
        The table; see the module for its columns.
    task : str
        What to call the task.
    columns : sequence of str, optional
        Label columns; by default every column that is no key.
    kind : {"classes", "labels", "values"}, optional
        What the labels are. By default texts are classes in sorted order, numbers that are all 0 or 1 are yes/no
        labels, and other numbers are values.
    fractions, seed
        Of the random split, where the table has no ``split`` column. It divides files; those that share a
        ``cluster`` stay together.

    Attributes
    ----------
    unlabelled_files : list of str
        Files of the folder that the table does not name; they take no part.

    Raises
    ------
    LabelError
        The table cannot be understood, or names absent files, or one residue or protein twice.
    DatasetError
        The ``split`` column is incomplete or contradicts itself.
    """

    def __init__(
        self,
        folder: str | Path,
        labels: str | Path,
        *,
        task: str = "labels",
        columns: Sequence[str] | None = None,
        kind: str | None = None,
        fractions: Mapping[str, float] = FRACTIONS,
        seed: int = 0,
    ) -> None:
        where, table = str(labels), read_table(labels)
        self._per_residue = "res_id" in table
        if self._per_residue and "chain" not in table:
            raise LabelError(f"{where}: labels per residue need a 'chain' column beside 'res_id'")
        sources, file = _files(Path(folder), table, where)
        columns = _label_columns(table, columns, where)
        self._values, made, classes = read_values(table, columns, kind, where)
        self._keys = (table["chain"], *residue_numbers(table, where)) if self._per_residue else ()
        named = {source.path for source in sources}
        self.unlabelled_files = sorted(p.name for p in _structures(Path(folder)) if p not in named)
        one_chain = "chain" in table and not self._per_residue
        chain = table["chain"].tolist() if one_chain else [""] * len(file)
        _no_duplicates(_row_names([sources[f].name for f in file], chain, self._keys), self._values, where)
        self._rows, examples = _examples(sources, file, chain)
        splits = _splits(table, file, list(self._rows.values()), where, fractions, seed)
        self._examples = [replace(e, split=s) for e, s in zip(examples, splits, strict=True)]
        level = "node" if self._per_residue else "graph"
        target = Target(task, level, made, len(classes or columns), tuple(classes or columns))
        rule = "as the table says" if "split" in table else f"random, seed {seed}, {dict(fractions)}"
        self.card = _card(Path(folder).resolve().name, where, target, rule, self._examples)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        self._task(task)
        return [e for e in self._examples if split in (None, e.split)]

    def labels(self, task: str, example: Example) -> Labels:
        self._task(task)
        rows = self._rows[example.id]
        if not self._per_residue:
            return ProteinLabels(self._values[rows[0]])
        return ResidueLabels(*(key[rows] for key in self._keys), self._values[rows], name=example.path.name)


def _label_columns(table: Table, columns: Sequence[str] | None, where: str) -> list[str]:
    free = [c for c in table if c not in KEYS]
    missing = [c for c in columns or () if c not in free]
    if missing or not free:
        what = f"no label column {missing[0]!r}" if missing else "no label column"
        raise LabelError(f"{where}: {what}; its columns are {', '.join(table)}")
    return free if columns is None else list(columns)


def _structures(folder: Path) -> list[Path]:
    """Files with the suffix of a structure or FASTA, maybe gzipped, sorted."""
    if not folder.is_dir():
        raise DatasetError(f"no folder of structures at {str(folder)!r}")
    return sorted(p for p in folder.iterdir() if is_protein_file(p))


def _stem(path: Path) -> str:
    """The name without the suffixes of a structure file."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name[: name.rindex(".")] if name.lower().endswith(SUFFIXES) else name


def _sources(path: Path) -> list[_Source]:
    """A structure file itself; of a FASTA file, every record."""
    return [_Source(path, record.name) for record in read_fasta(path)] if is_fasta(path) else [_Source(path)]


def _named(folder: Path) -> dict[str, list[_Source]]:
    """What may be meant by a name without the suffix, by a record's name, or by both."""
    named: dict[str, list[_Source]] = {}
    for path in _structures(folder):
        sources = _sources(path)
        for source in sources:
            names = {source.stem, source.name, *([_stem(path), path.name] if len(sources) == 1 else [])}
            for name in names:
                named.setdefault(name, []).append(source)
    return named


def _files(folder: Path, table: Table, where: str) -> tuple[list[_Source], list[int]]:
    """The files and records that are named, and which of them each row names."""
    given = [c for c in ("file", "id") if c in table]
    if len(given) != 1:
        raise LabelError(f"{where}: one column 'file' or 'id' says which protein; its columns are {', '.join(table)}")
    named = _named(folder)
    found: dict[str, _Source] = {}
    absent: list[str] = []
    for name in dict.fromkeys(table[given[0]].tolist()):
        exact = _sources(folder / name) if name and (folder / name).is_file() else named.get(name, [])
        if len(exact) > 1:
            shown = ", ".join(source.name for source in exact[:SHOWN]) + (", …" if len(exact) > SHOWN else "")
            raise LabelError(f"{where}: {name!r} may be any of {shown}; give the whole name")
        found |= {name: exact[0]} if exact else {}
        absent += [] if exact else [name]
    if absent:
        shown = ", ".join(map(repr, absent[:SHOWN])) + (", …" if len(absent) > SHOWN else "")
        raise LabelError(f"{where} names {len(absent)} files that are not in {folder}: {shown}")
    sources = list(dict.fromkeys(found.values()))
    place = {source: i for i, source in enumerate(sources)}
    return sources, [place[found[name]] for name in table[given[0]].tolist()]


def _row_names(files: list[str], chains: list[str], keys: tuple[np.ndarray, ...]) -> list[str]:
    """What each row labels, readable: ``1ubq.pdb``, ``1ubq.pdb chain A``, ``1ubq.pdb A:42``."""
    if not keys:
        return [f"{file} chain {chain}" if chain else file for file, chain in zip(files, chains, strict=True)]
    residues = zip(*(key.tolist() for key in keys), strict=True)
    return [f"{file} {c}:{r}{i}" for file, (c, r, i) in zip(files, residues, strict=True)]


def _no_duplicates(names: list[str], values: np.ndarray, where: str) -> None:
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        first = seen.setdefault(name, row)
        if first != row:
            same = np.array_equal(values[first], values[row], equal_nan=values.dtype.kind == "f")
            verdict = "say the same" if same else "contradict each other"
            raise LabelError(f"{where}: labels {first + 1} and {row + 1} are both of {name} and {verdict}; keep one")


def _examples(sources: list[_Source], file: list[int], chain: list[str]) -> tuple[dict[str, np.ndarray], list[Example]]:
    """One example a file and chain, in order of appearance, and the rows of each by its id; splits still open."""
    often = Counter(source.stem for source in sources)
    ids = [source.stem if often[source.stem] == 1 else source.name for source in sources]
    rows: dict[tuple[int, str], list[int]] = {}
    for row, key in enumerate(zip(file, chain, strict=True)):
        rows.setdefault(key, []).append(row)
    examples = [
        Example(f"{ids[f]}_{c}" if c else ids[f], sources[f].path, (c,) if c else None, "", sources[f].record)
        for f, c in rows
    ]
    return {e.id: np.array(r) for e, r in zip(examples, rows.values(), strict=True)}, examples


def _splits(
    table: Table,
    file: list[int],
    rows: list[np.ndarray],
    where: str,
    fractions: Mapping[str, float],
    seed: int,
) -> list[str]:
    """The split of each example."""
    if "split" not in table:
        cluster = table.get("cluster")
        linked = [file] if cluster is None else [file, [c or None for c in cluster.tolist()]]
        component = connected_groups(*linked)
        return group_split([component[r[0]] for r in rows], fractions=fractions, seed=seed)
    given = [sorted(set(table["split"][r].tolist())) for r in rows]
    for r, names in zip(rows, given, strict=True):
        if names == [""] or len(names) > 1:
            raise DatasetError(f"{where}: the protein of label {r[0] + 1} has the splits {names}; it needs exactly one")
    found = {names[0] for names in given}
    if "train" not in found:
        raise DatasetError(
            f"{where}: no protein is in split 'train', only in {sorted(found)}; call the usual ones train, val and test"
        )
    return [names[0] for names in given]


def _card(name: str, where: str, target: Target, rule: str, examples: list[Example]) -> Card:
    held = [e.split for e in examples]
    order = [s for s in USUAL if s in held] + sorted(set(held) - set(USUAL))
    counts = {split: Count(held.count(split)) for split in order}
    task = TaskCard(target, f"from {where}", "every file that the table names", counts)
    return Card(name, "", "", "", f"structures of a folder, labels of {where}", rule, counts, {target.name: task})
