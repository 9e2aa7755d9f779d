"""Folders of user files and graph stores as datasets for a task."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any

from protgraph import registry
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.label_table import read_label_table
from protgraph.data.store.store_files import is_store
from protgraph.errors import DatasetError, UnknownNameError, suggest
from protgraph.featurize.file_cache import cached_fingerprint
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sources import is_source
from protgraph.task.task import Task

__all__ = ["find_proteins", "user_dataset", "check_labels_are_used", "tasks_without_labels"]


def find_proteins(source: object) -> Path | list[str]:
    """Return the folder or graph store, or the list of files and patterns, that a dataset argument names."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, Sequence) or not all(isinstance(name, str | os.PathLike) for name in names):
        raise DatasetError(
            f"dataset: {type(source).__name__} is not a dataset. Allowed: the name of a registered dataset, a folder, "
            "file, pattern or graph store, a list of these, or a Dataset."
        )
    names = [os.fspath(name) for name in names]
    if not names or "" in names:
        raise UnknownNameError("dataset: the name is empty. Give a folder, a file or a registered dataset.")
    for name in names:
        if not (has_magic(name) or name.startswith("@") or is_source(name) or is_store(name)):
            registered = registry.datasets.names()
            raise UnknownNameError(
                f"dataset {name!r}: neither a registered dataset nor a folder or file."
                f"{suggest(Path(name).name, registered)}\n"
                f"Registered datasets: {', '.join(registered)}. Or give structure or FASTA files, or a graph store."
            )
    return Path(names[0]) if len(names) == 1 and (Path(names[0]).is_dir() or is_store(names[0])) else names


def user_dataset(
    folder: str | Path | Sequence[str | os.PathLike[str]],
    labels: Any,
    task: str | Task | None,
    *,
    columns: str | Sequence[str] | None = None,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    leave_out_absent: bool = False,
    cache: Path,
) -> FolderDataset:
    """Return the proteins of a folder or graph store as a dataset for one task.

    Parameters
    ----------
    folder : str, Path, or sequence of str or PathLike
        Folder of structure or FASTA files, graph store, or list of files.
    labels : str, Path or data frame, optional
        Table of labels, of splits, or both; see :mod:`protgraph.data.datasets.folder`.
    task : str or Task, optional
        A label column of the table, or a registered task. Default: the only label column.
    columns : str or sequence of str, optional
        Label column, or several numeric ones that form one task. ``task`` is then their name (joined by "+") or the
        registered task that they are the labels of.
    kind : str, optional
        Kind of the labels of the table; see :class:`protgraph.data.datasets.folder.FolderDataset`.
    unknown : collection of str, optional
        Texts in the table that mean an unknown label.
    seed : int
        Seed of the random split.
    read : ReadOptions, optional
        Chains, model, alternate locations and assembly of every file.
    leave_out_absent : bool
        Leave out labels of residues that the structures do not have; see
        :class:`protgraph.data.datasets.folder.FolderDataset`.
    cache : Path
        Folder of prepared data.

    Raises
    ------
    DatasetError
        The task requires labels, and there are none.
    UnknownNameError
        ``task`` is neither a label column nor a registered task, or ``columns`` are not in the table.
    LabelError
        The table is invalid, or no task is given and it has several label columns.
    """
    read = read or ReadOptions()
    common = {"seed": seed, "fingerprint": partial(cached_fingerprint, folder=cache, read=read), "read_options": read}
    name = task.name if isinstance(task, Task) else task
    columns = [columns] if isinstance(columns, str) else columns
    if labels is not None:
        labels = read_label_table(labels, columns=[*(columns or ()), *([name] if name else ())])
    available = [] if labels is None else [*labels.labels, *labels.empty]
    where = "" if labels is None else labels.where
    columns = [name] if columns is None and name in available else columns
    resolved = task if isinstance(task, Task) or task is None else _registered(task)
    if columns is None and resolved is not None and resolved.derives_labels:
        return FolderDataset(folder, labels, task=resolved.name, target=resolved.target, **common)
    if labels is not None and (available or columns):
        _check_task_name(name, columns, available, where, is_registered=resolved is not None)
        classes = () if resolved is None or resolved.target.kind != "classification" else resolved.target.names
        options = {"columns": columns, "kind": kind, "unknown": unknown, "classes": classes}
        options["leave_out_absent"] = leave_out_absent
        return FolderDataset(folder, labels, task=name, **options, **common)
    missing = "there is no label table" if labels is None else f"{where} has no label column"
    subject = "no task is given" if name is None else f"task {name!r} requires labels"
    if name is not None and resolved is None and name not in registry.tasks:
        hint = suggest(name, registry.tasks.names())
        raise DatasetError(
            f"dataset {str(folder)!r}: task {name!r} is not registered, and {missing} with such a column.{hint} "
            f"Tasks that need no table: {', '.join(tasks_without_labels())}."
        )
    raise DatasetError(
        f"dataset {str(folder)!r}: {subject}, and {missing}.\n"
        "Labels are a CSV file: columns file and a label per protein, or file, chain, res_id and a label per residue.\n"
        f"Tasks that need none: {', '.join(tasks_without_labels())}."
    )


def _check_task_name(
    name: str | None, columns: Sequence[str] | None, available: Sequence[str], where: str, *, is_registered: bool
) -> None:
    """Raise if a task is neither of the label columns nor registered: labels are never used under another name."""
    if name is None or (columns is not None and (is_registered or name in (*columns, "+".join(columns)))):
        return
    have = f"Label columns: {', '.join(available)}."
    if is_registered:
        raise UnknownNameError(
            f"{where}: no column {name!r}, the labels of this task. {have} Rename the column, or give --column."
        )
    if columns is not None:
        raise UnknownNameError(
            f"{where}: task {name!r} of the columns {', '.join(columns)} is not registered. Omit --task (task=)."
        )
    tasks = tasks_without_labels()
    hint = suggest(name, [*available, *tasks])
    raise UnknownNameError(
        f"{where}: task {name!r} is neither a label column nor a registered task.{hint} {have}\n"
        f"Tasks that need no labels: {', '.join(tasks)}."
    )


def check_labels_are_used(datasets: Sequence[Dataset], *, where: str = "") -> None:
    """Raise if a label table is given but no requested task uses it."""
    folders = [dataset for dataset in datasets if isinstance(dataset, FolderDataset)]
    if folders and not any(dataset.has_labels for dataset in folders) and folders[0].unused_columns:
        columns = ", ".join(folders[0].unused_columns)
        tasks = ", ".join(task for dataset in folders for task in dataset.tasks())
        raise DatasetError(
            f"{where}label columns of the table are not used ({columns}): {tasks} derive their labels.\n"
            "Name a column as the task to use it, or remove the label columns from the table."
        )


def tasks_without_labels() -> list[str]:
    """Return the names of the registered tasks that derive their labels from structures or sequences."""
    broken = {problem.name for problem in registry.tasks.problems(load=True)}
    tasks = {name: registry.tasks.get(name) for name in registry.tasks.names() if name not in broken}
    return [name for name, task in tasks.items() if task.derives_labels]


def _registered(name: str) -> Task | None:
    """Return a registered task under the given name, which is "distribution/name" if another one has its own name."""
    return replace(registry.tasks.get(name), name=name) if name in registry.tasks else None
