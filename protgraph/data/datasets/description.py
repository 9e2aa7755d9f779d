"""Description of a dataset for people: files, labels as they were understood, tasks, splits and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from protgraph.data.datasets.card import SplitCount, TaskCard
from protgraph.data.datasets.label_column import LabelColumn
from protgraph.data.datasets.target import Target
from protgraph.errors import list_first
from protgraph.wording import count_noun

__all__ = ["DatasetDescription", "describe_count"]

_LEVELS = {"node": "residue", "graph": "protein", "edge": "edge", "pair": "pair of residues"}
_SHOWN = 10


@dataclass(frozen=True)
class DatasetDescription:
    """Contents of a dataset; ``str`` returns the lines that ``protgraph data inspect`` and ``train`` print.

    Parameters
    ----------
    proteins : int
        Number of examples.
    rule : str
        Rule of the splits.
    task_rules : mapping of str to str
        Task → rule of its splits, where tasks differ.
    files : str
        Which files take part, e.g. "11 files, 3 of them in subfolders"; empty for a dataset without a folder.
    left_out : mapping of str to str
        File that does not take part → reason.
    table : str
        Label table, its level and format; empty if there is none.
    columns : tuple of LabelColumn
        Label columns as they were understood.
    unused_columns : tuple of str
        Label columns that no task uses.
    refused_columns : mapping of str to str
        Label column → reason why it cannot be a label.
    notes : tuple of str
        Further messages for the user.
    split_notes : tuple of str
        Messages about the splits.
    """

    name: str
    version: str
    proteins: int
    splits: Mapping[str, SplitCount]
    rule: str = ""
    task_rules: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, TaskCard] = field(default_factory=dict)
    files: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    columns: tuple[LabelColumn, ...] = ()
    unused_columns: tuple[str, ...] = ()
    refused_columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    split_notes: tuple[str, ...] = ()

    def without_splits(self) -> DatasetDescription:
        """Return the description without splits, their counts and notes about them, e.g. for cross-validation."""
        tasks = {name: replace(task, counts={}) for name, task in self.tasks.items()}
        return replace(self, splits={}, rule="", task_rules={}, tasks=tasks, split_notes=())

    def __getitem__(self, part: slice | int) -> str:
        """Return a part of the text, e.g. ``describe()[:500]``."""
        return str(self)[part]

    def __str__(self) -> str:
        title = f"dataset {self.name}: {count_noun(self.proteins, 'protein')}"
        if self.files:
            title += f" in {self.files}"
        if self.version:
            title += f", version {self.version}"
        lines = [title]

        # files that do not take part, by reason
        names_of_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            names_of_reason.setdefault(reason, []).append(name)
        for reason, names in names_of_reason.items():
            lines.append(f"  not used, {reason}: {list_first(names, _SHOWN)} ({count_noun(len(names), 'file')})")
        # labels, splits and tasks
        lines += self._label_lines()
        if self.rule:
            lines.append(f"splits: {self.rule}")
        if not self.tasks:
            lines += _split_lines(self.splits, None)
        for name, task in self.tasks.items():
            lines.append(f"task {name}: {_describe_target(task.target)}")
            if name in self.task_rules:
                lines.append(f"  {self.task_rules[name]}")
            lines += _split_lines(task.counts, task.target)
        lines += [f"note: {note}" for note in (*self.notes, *self.split_notes)]
        return "\n".join(lines)

    def _label_lines(self) -> list[str]:
        """Return the label table and its columns, each in a line."""
        lines = [f"labels: {self.table}"] if self.table else []
        lines += [f"  {column}" for column in self.columns]
        lines += [f"  {name}: refused. {reason}" for name, reason in self.refused_columns.items()]
        if self.unused_columns:
            lines.append(f"  not used: {', '.join(self.unused_columns)}")
        return lines


def describe_count(count: SplitCount, target: Target | None) -> str:
    """Return the counts of a split in words, e.g. "7 proteins, 4715 residues, 60 positive of 4000 labels".

    Examples
    --------
    >>> describe_count(SplitCount(1, 76, 2, (1,)), Target("site", "node", "multilabel", 1, ("site",)))
    '1 protein, 76 residues, 2 labeled (1 positive)'
    """
    texts = [count_noun(count.proteins, "protein")]
    if count.residues is not None:
        texts.append(count_noun(count.residues, "residue"))
    if count.labeled is not None and target is not None:
        labeled = f"{count.labeled} labeled"
        texts.append(f"{labeled} ({_describe_classes(count, target)})" if count.per_class else labeled)
    return ", ".join(texts)


def _describe_classes(count: SplitCount, target: Target) -> str:
    """Return the numbers of labels of each class, or of the positives of each label."""
    if target.kind == "multilabel" and target.size == 1:
        return f"{count.per_class[0]} positive"
    names = target.names or tuple(map(str, range(target.size)))
    counts = [f"{name} {number}" for name, number in zip(names, count.per_class, strict=True)]
    listed = list_first(counts, _SHOWN)
    return f"positive: {listed}" if target.kind == "multilabel" else listed


def _describe_target(target: Target) -> str:
    """Return e.g. "2 classes per protein (no, yes)"."""
    kinds = {
        "classification": "class" if target.size == 1 else "classes",
        "multilabel": "binary label" if target.size == 1 else "binary labels",
        "regression": "number" if target.size == 1 else "numbers",
        "vectors": "vector" if target.size == 1 else "vectors",
        "coordinates": "point" if target.size == 1 else "points",
    }
    names = f" ({list_first(list(target.names), _SHOWN)})" if target.names and target.size > 1 else ""
    return f"{target.size} {kinds[target.kind]} per {_LEVELS[target.level]}{names}"


def _split_lines(splits: Mapping[str, SplitCount], target: Target | None) -> list[str]:
    width = max(map(len, splits), default=0)
    return [f"  {name:{width}}  {describe_count(count, target)}" for name, count in splits.items()]
