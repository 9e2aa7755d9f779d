"""Resolve ``dataset`` and ``task`` arguments: names, folders and graph stores to objects."""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch_geometric.data import Data

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.dataset_checks import require_card
from protgraph.data.datasets.dataset_view import add_derived_task
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.graph_list import GraphListDataset
from protgraph.data.datasets.label_table import read_label_table
from protgraph.data.graph.convert import from_pyg
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, UnknownNameError, suggest
from protgraph.featurize.file_cache import cached_fingerprint
from protgraph.registry.component_names import split_distribution
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.task.task import Task, default_task
from protgraph.train.user_dataset import find_proteins, tasks_without_labels, user_dataset

__all__ = ["load_dataset", "load_proteins", "resolve_task"]


@check_arguments("task", "columns", "kind", "seed", "read")
def load_dataset(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]] | Sequence[Data],
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
    labels, columns, kind, unknown, seed, leave_out_absent
        For a folder or store: label table, label columns, and seed of the random split; see
        :func:`protgraph.train.user_dataset.user_dataset`.
    task : str or Task, optional
        For a folder or store: task or label column. For any other dataset: a task that derives its labels is added
        if the dataset does not have it; see :func:`protgraph.data.add_derived_task`.
    read : ReadOptions, optional
        Chains, model, alternate locations and assembly of every file.
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.structure.io.cache_dir`.

    Raises
    ------
    UnknownNameError
        There is neither a dataset nor a folder of this name.
    DatasetError
        The dataset has labels of its own, or its own way of reading files, so that ``labels`` or ``read`` do not apply.

    Examples
    --------
    >>> load_dataset("pdb_core").name
    'pdb_core'
    """
    if isinstance(dataset, GraphStore):
        dataset = dataset.path
    if isinstance(dataset, Sequence) and dataset and all(isinstance(graph, Data) for graph in dataset):
        if labels is not None or columns is not None or read is not None:
            raise DatasetError("a list of graphs has labels y of its own; labels, columns and read are for files.")
        graphs = [graph if isinstance(graph, ProteinGraph) else from_pyg(graph) for graph in dataset]
        return _graph_list(graphs, task, seed)
    if not isinstance(dataset, Dataset) and not (isinstance(dataset, str) and dataset in registry.datasets):
        options = {"columns": columns, "kind": kind, "unknown": unknown, "seed": seed, "read": read}
        options["leave_out_absent"] = leave_out_absent
        return user_dataset(find_proteins(dataset), labels, task, **options, cache=cache_dir(cache))
    if labels is not None:
        raise DatasetError(
            f"labels {str(labels)!r}: dataset {getattr(dataset, 'name', dataset)!r} has labels of its own. Labels are "
            "for a folder of files or a graph store.\nA folder of the same name is './name'."
        )
    resolved = dataset if isinstance(dataset, Dataset) else registry.datasets.create(dataset)
    if not isinstance(resolved, Dataset):
        raise DatasetError(f"dataset {dataset!r} is a {type(resolved).__name__}, not a protgraph Dataset.")
    require_card(resolved, name=dataset if isinstance(dataset, str) else "")
    if read is None or read == resolved.read_options:
        return _with_task(resolved, task)
    if not resolved.reads_files:
        raise DatasetError(f"dataset {resolved.name!r} reads its proteins itself; read options do not apply: {read}")
    resolved = copy.copy(resolved)
    resolved.read_options = read
    return _with_task(resolved, task)


def load_proteins(
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
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
    is_known = isinstance(dataset, Dataset) or (isinstance(dataset, str) and dataset in registry.datasets)
    if is_known:
        return load_dataset(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    table = None if labels is None else read_label_table(labels, columns=[task] if task else ())
    if task is not None or (table is not None and len(table.labels) == 1):
        return load_dataset(dataset, labels=table, task=task, seed=seed, read=read, cache=cache)
    source = dataset.path if isinstance(dataset, GraphStore) else dataset
    keys = None if table is None else replace(table, labels=MappingProxyType({}), empty=())
    read = read or ReadOptions()
    fingerprint = partial(cached_fingerprint, folder=cache_dir(cache), read=read)
    return FolderDataset(find_proteins(source), keys, seed=seed, fingerprint=fingerprint, read_options=read)


def _graph_list(graphs: Sequence[ProteinGraph], task: str | Task | None, seed: int) -> GraphListDataset:
    name = task.name if isinstance(task, Task) else task or "y"
    found = task if isinstance(task, Task) else _registered(name)
    return GraphListDataset(graphs, task=name, target=None if found is None else found.target, seed=seed)


def _with_task(dataset: Dataset, task: str | Task | None) -> Dataset:
    """Add a task that derives its labels to a dataset that does not have it."""
    name = task.name if isinstance(task, Task) else task
    if name is None or name in dataset.tasks():
        return dataset
    found = task if isinstance(task, Task) else _registered(task)
    if found is not None and found.derives_labels:
        return add_derived_task(dataset, name, found.target)
    own = sorted(dataset.tasks())
    if found is not None:
        raise UnknownNameError(
            f"task {name!r} requires labels, and dataset {dataset.name!r} has none for it. It has labels for "
            f"{', '.join(own)}; other tasks derive theirs: {', '.join(tasks_without_labels())}."
        )
    choices = [*own, *registry.tasks.names()]
    raise UnknownNameError(
        f"dataset {dataset.name!r} has no task {name!r}, and no task of this name is registered."
        f"{suggest(name, choices)} Tasks of the dataset: {', '.join(own)}.\n"
        f"A task that derives its labels works with any dataset: protgraph.tasks.register({name!r}, Task(…))."
    )


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
    if task not in registry.tasks:
        return default_task(target)
    registered = _registered(task)
    ours, theirs = ((t.level, t.kind, t.size, t.names if target.names else ()) for t in (registered.target, target))
    if ours != theirs:
        raise DatasetError(
            f"task {task!r}: dataset {dataset.name!r} defines {theirs}, the registered task {ours} (level, kind, size, "
            "names). Rename the task of the dataset."
        )
    return registered


def _registered(name: str) -> Task | None:
    """Return the registered task of a name; None if there is none."""
    if name not in registry.tasks:
        return None
    task = registry.tasks.get(name)
    if split_distribution(name)[0]:
        return replace(task, name=name)
    if task.name != name:
        raise DatasetError(f"task {name!r} is registered under another name than its own, {task.name!r}. Use its own.")
    return task
