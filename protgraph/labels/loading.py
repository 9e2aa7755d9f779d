"""Datasets from the argument ``dataset``: registered names, folders and files with label tables, stores and graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from torch_geometric.data import Data

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.cache_key import code_digest, digest, stamps
from protgraph.data.datasets.dataset import Dataset, add_derived_task, require_card, with_read_options
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.graph_list import GraphListDataset, are_graphs
from protgraph.data.datasets.label_table import LabelTable, label_names, read_label_table
from protgraph.data.datasets.protein_files import open_folder
from protgraph.data.datasets.target import Target
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, UnknownNameError, suggest
from protgraph.file_io import atomic_write
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.structure.io.registered_readers import split_entry
from protgraph.task.task import Task, default_task

__all__ = [
    "DatasetSource",
    "LabelSelection",
    "cached_fingerprint",
    "cached_fingerprints",
    "check_labels_are_used",
    "is_registered_dataset",
    "load_dataset",
    "load_proteins",
    "resolve_task",
    "select_labels",
    "tasks_without_labels",
]


DatasetSource: TypeAlias = str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]]
"""Name of a registered dataset, folder, file, pattern, list of these, graph store, or dataset."""


@check_arguments("task", "columns", "kind", "seed", "read")
def load_dataset(
    dataset: DatasetSource | Sequence[Data],
    *,
    labels: Any = None,
    task: str | Task | None = None,
    columns: str | Sequence[str] | None = None,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    leave_out_absent: bool = False,
    cache: str | Path | None = None,
) -> Dataset:
    """Return a dataset: a registered one, a folder of files, a graph store, or the given one.

    Parameters
    ----------
    dataset : str, Path, Dataset, GraphStore, or sequence of str, PathLike, ProteinGraph or Data
        Registry name; folder of structure or FASTA files with its subfolders; graph store; file or pattern; a list of
        files, folders and patterns; or a list of ProteinGraphs, or PyG's ``Data`` (:func:`protgraph.from_pyg`), with
        labels ``y`` (:class:`protgraph.data.datasets.GraphListDataset`). A registered name has priority over a folder
        of the same name, which is ``"./name"``.
    labels : str, Path or data frame, optional
        For a folder, files or a store: table of labels, of splits, or both; see
        :class:`protgraph.data.datasets.FolderDataset`.
    task : str or Task, optional
        For a folder, files or a store: a label column of the table (default: the only one), or a registered task. For
        any other dataset: a task that derives its labels is added if the dataset does not have it; see
        :func:`protgraph.data.add_derived_task`.
    columns : str or sequence of str, optional
        Label column, or several numeric ones that form one task. ``task`` is then their name (joined by "+") or the
        registered task that they are the labels of.
    kind : {"classification", "multilabel", "regression"}, optional
        Kind of the labels of the table.
    unknown : collection of str, optional
        Texts in the table that mean an unknown label.
    seed : int
        Seed of the random split.
    read : ReadOptions, optional
        Chains, model, alternate locations and assembly of every file.
    leave_out_absent : bool
        Leave out labels of residues that the structures do not have.
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.structure.io.cache_dir`.

    Raises
    ------
    UnknownNameError
        There is neither a dataset nor a folder of this name, ``task`` is neither a label column nor a registered task,
        or ``columns`` are not in the table.
    DatasetError
        The task requires labels, and there are none; or the dataset has labels of its own, or its own way of reading
        files, so that ``labels`` or ``read`` do not apply.
    LabelError
        The table is invalid, or no task is given and it has several label columns.

    Examples
    --------
    >>> load_dataset("pdb_core").name
    'pdb_core'
    """
    if is_registered_dataset(dataset):
        return _registered_dataset(dataset, task, labels, read)
    name = _name_of(task)
    if are_graphs(dataset):
        if labels is not None or columns is not None or read is not None:
            raise DatasetError("a list of graphs has labels y of its own; labels, columns and read are for files.")
        return GraphListDataset(dataset, task=name or "y", target=_target_of(task or "y"), seed=seed)

    # Files: first the names, then the table and what the task reads of it, and last the files.
    read = read or ReadOptions()
    proteins = open_folder(dataset, fingerprint=cached_fingerprints(read, cache))
    table = None if labels is None else read_label_table(labels, columns=label_names(name, columns))
    selection = select_labels(table, task, columns)
    if selection.missing:
        raise DatasetError(f"dataset {str(proteins.source)!r}: {selection.missing}")
    return FolderDataset(
        proteins,
        table,
        task=selection.task,
        columns=selection.columns,
        classes=selection.classes,
        target=selection.target,
        kind=kind,
        unknown=unknown,
        seed=seed,
        read_options=read,
        leave_out_absent=leave_out_absent,
    )


def load_proteins(
    dataset: DatasetSource,
    *,
    labels: Any = None,
    task: str | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
) -> Dataset:
    """Return a dataset of which only the proteins and splits are used, so that no task is required.

    Parameters
    ----------
    dataset, labels, task, seed, read, cache
        As of :func:`load_dataset`. A folder without a task is a dataset without tasks, unless its table has one label
        column, which is the task then.
    """
    if is_registered_dataset(dataset):
        return load_dataset(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    table = None if labels is None else read_label_table(labels, columns=label_names(task, None))
    if task is not None or (table is not None and len(table.labels) == 1):
        return load_dataset(dataset, labels=table, task=task, seed=seed, read=read, cache=cache)
    keys = None if table is None else replace(table, labels=MappingProxyType({}), empty=())
    read = read or ReadOptions()
    proteins = open_folder(dataset, fingerprint=cached_fingerprints(read, cache))
    return FolderDataset(proteins, keys, seed=seed, read_options=read)


# --- registered datasets and graphs ---------------------------------------------------------------------------------


def is_registered_dataset(dataset: object) -> TypeGuard[str | Dataset]:
    """Return True for a Dataset and for the name of a registered one."""
    return isinstance(dataset, Dataset) or (isinstance(dataset, str) and dataset in registry.datasets)


def _registered_dataset(
    dataset: str | Dataset, task: str | Task | None, labels: Any, read: ReadOptions | None
) -> Dataset:
    """Return a dataset by name or as it is, with the task if this derives its labels, and with other read options."""
    if labels is not None:
        raise DatasetError(
            f"labels {str(labels)!r}: dataset {getattr(dataset, 'name', dataset)!r} has labels of its own. Labels are "
            "for a folder of files or a graph store.\nA folder of the same name is './name'."
        )
    created = dataset if isinstance(dataset, Dataset) else registry.datasets.create(dataset)
    if not isinstance(created, Dataset):
        raise DatasetError(f"dataset {dataset!r} is a {type(created).__name__}, not a protgraph Dataset.")
    require_card(created, name=dataset if isinstance(dataset, str) else "")
    if read is not None:
        created = with_read_options(created, read)
    name = _name_of(task)
    if name is None or name in created.tasks():
        return created

    # a task that the dataset does not have can only derive its labels
    resolved = task if isinstance(task, Task) else _registered_task(name)
    if resolved is not None and resolved.derives_labels:
        return add_derived_task(created, name, resolved.target)
    labeled = sorted(created.tasks())
    if resolved is not None:
        raise UnknownNameError(
            f"task {name!r} requires labels, and dataset {created.name!r} has none for it. It has labels for "
            f"{', '.join(labeled)}; other tasks derive theirs: {', '.join(tasks_without_labels())}."
        )
    raise UnknownNameError(
        f"dataset {created.name!r} has no task {name!r}, and no task of this name is registered."
        f"{suggest(name, [*labeled, *registry.tasks.names()])} Tasks of the dataset: {', '.join(labeled)}.\n"
        f"A task that derives its labels works with any dataset: protgraph.tasks.register({name!r}, Task(…))."
    )


# --- files with a label table ---------------------------------------------------------------------------------------


class LabelSelection(NamedTuple):
    """Columns and classes that a task reads of a label table; only the target, if the task computes its labels."""

    task: str | None
    columns: Sequence[str] | None = None
    classes: tuple[str, ...] = ()
    target: Target | None = None
    missing: str = ""  # fault: why the task has no labels, and what to do


def select_labels(
    table: LabelTable | None, task: str | Task | None, columns: str | Sequence[str] | None
) -> LabelSelection:
    """Return what a task reads of a table; labels are never used under another name."""
    name = _name_of(task)
    resolved = _registered_task(task, renamed=True) if isinstance(task, str) else task
    available = _label_columns(table)
    if columns is None and name in available:
        columns = name
    if columns is None and resolved is not None and resolved.derives_labels:
        return LabelSelection(resolved.name, target=resolved.target)
    columns = [columns] if isinstance(columns, str) else columns
    if table is None or (not available and not columns):
        return LabelSelection(name, missing=_missing_labels(table, name, is_registered=resolved is not None))
    _check_task_name(name, columns, available, table.where, is_registered=resolved is not None)
    return LabelSelection(name, columns, _class_names(resolved))


def _label_columns(table: LabelTable | None) -> list[str]:
    """Return the label columns of a table, blank ones included."""
    return [] if table is None else [*table.labels, *table.empty]


def _class_names(task: Task | None) -> tuple[str, ...]:
    """Return the names and order of the classes that a registered task fixes."""
    return task.target.names if task is not None and task.target.kind == "classification" else ()


def _missing_labels(table: LabelTable | None, name: str | None, *, is_registered: bool) -> str:
    """Return why a task has no labels in a table, and what to do."""
    missing = "there is no label table" if table is None else f"{table.where} has no label column"
    tasks = ", ".join(tasks_without_labels())
    if name is not None and not is_registered and name not in registry.tasks:
        hint = suggest(name, registry.tasks.names())
        return (
            f"task {name!r} is not registered, and {missing} with such a column.{hint} Tasks that need no table: "
            f"{tasks}."
        )
    subject = "no task is given" if name is None else f"task {name!r} requires labels"
    return (
        f"{subject}, and {missing}.\n"
        "Labels are a CSV file: columns file and a label per protein, or file, chain, res_id and a label per residue.\n"
        f"Tasks that need none: {tasks}."
    )


def _check_task_name(
    name: str | None, columns: Sequence[str] | None, available: Sequence[str], where: str, *, is_registered: bool
) -> None:
    """Raise if a task is neither of the label columns nor registered."""
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


# --- tasks ----------------------------------------------------------------------------------------------------------


def resolve_task(task: str | Task | None, dataset: Dataset) -> Task:
    """Return the registered task of a name, or the default task of the target that the dataset defines for it.

    None is the only task of the dataset.
    """
    if task is None:
        names = dataset.tasks()
        if len(names) != 1:
            raise DatasetError(
                f"dataset {dataset.name!r} has {len(names)} tasks, and none is given. Allowed: {', '.join(names)}. "
                "Give the argument task."
            )
        task = names[0]
    if isinstance(task, Task):
        return task
    target = dataset.target(task)
    registered = _registered_task(task)
    if registered is None:
        return default_task(target)
    ours, theirs = ((t.level, t.kind, t.size, t.names if target.names else ()) for t in (registered.target, target))
    if ours != theirs:
        raise DatasetError(
            f"task {task!r}: dataset {dataset.name!r} defines {theirs}, the registered task {ours} (level, kind, size, "
            "names). Rename the task of the dataset."
        )
    return registered


def _name_of(task: str | Task | None) -> str | None:
    return task.name if isinstance(task, Task) else task


def _target_of(task: str | Task) -> Target | None:
    """Return the target that a task fixes; None for a name that is not registered."""
    resolved = task if isinstance(task, Task) else _registered_task(task)
    return None if resolved is None else resolved.target


def tasks_without_labels() -> list[str]:
    """Return the names of the registered tasks that derive their labels from structures or sequences."""
    broken = {problem.name for problem in registry.tasks.problems(load=True)}
    tasks = {name: registry.tasks.get(name) for name in registry.tasks.names() if name not in broken}
    return [name for name, task in tasks.items() if task.derives_labels]


def _registered_task(name: str, *, renamed: bool = False) -> Task | None:
    """Return the registered task of a name; None if there is none.

    A name "distribution/name" becomes the name of the task, and with ``renamed`` so does any other.
    """
    if name not in registry.tasks:
        return None
    task = registry.tasks.get(name)
    if task.name == name:
        return task
    if renamed or "/" in name:
        return replace(task, name=name)
    raise DatasetError(f"task {name!r} is registered under another name than its own, {task.name!r}. Use its own.")


def cached_fingerprints(read: ReadOptions, cache: str | Path | None) -> Callable[[Path], Fingerprint]:
    """Return the function from a file to its fingerprint, with results in the cache."""
    return partial(cached_fingerprint, folder=cache_dir(cache), read=read)


def cached_fingerprint(path: Path, *, folder: str | Path, read: ReadOptions) -> Fingerprint:
    """Return the checksum and the sequences of a file, which is opened only if its size or time of change is new.

    ``path``: structure or FASTA file, or an entry "db:name" of a container.
    """
    key = digest(_stamps(path), read.to_dict(), code_digest("protgraph.structure"))
    entry = Path(folder) / "contents" / key[:2] / f"{key}.json"
    try:
        return Fingerprint.from_dict(json.loads(entry.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        pass  # missing or damaged
    fingerprint = fingerprint_file(path, read=read)
    with atomic_write(entry) as temporary:
        temporary.write_text(json.dumps(asdict(fingerprint)), encoding="utf-8")
    return fingerprint


def _stamps(path: str | Path) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of a file, or of the files of a container and the name of an entry."""
    if (entry := split_entry(path)) is None:
        return stamps([Path(path).absolute()])
    files = stamps([Path(file).absolute() for file in entry.reader.files(entry.container)])
    return [*files, (entry.name, 0, 0)]
