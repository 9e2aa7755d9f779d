"""Names to what they stand for: the dataset and the task that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protgraph import registry
from protgraph.data.datasets.dataset import Dataset
from protgraph.errors import DatasetError
from protgraph.structure.io import ReadOptions, cache_dir
from protgraph.task.task import Task, default_task
from protgraph.train.user_dataset import find_folder, user_dataset

__all__ = ["load_dataset", "resolve_task"]


def load_dataset(
    dataset: str | Path | Dataset,
    *,
    labels: str | Path | None = None,
    task: str | Task | None = None,
    columns: Sequence[str] | None = None,
    kind: str | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
) -> Dataset:
    """The dataset of a registry name, the files of a folder, or the dataset given.

    Parameters
    ----------
    dataset : str, Path or Dataset
        A registered name wins over a folder of the same name: that is ``"./name"``.
    labels, task, columns, kind, seed
        Of a folder: its table, what will be asked, and the random split; see :func:`protgraph.train.user_dataset.user_dataset`.
    cache : str or Path, optional
        Folder of prepared data.
    """
    is_name = isinstance(dataset, Dataset) or str(dataset) in registry.datasets
    if is_name and labels is not None:
        raise DatasetError(
            f"labels {str(labels)!r} are for a folder of files, and {getattr(dataset, 'name', dataset)!r} is a dataset "
            "with its own.\nA folder of the same name is './name'."
        )
    if not is_name:
        folder, cache = find_folder(str(dataset)), cache_dir(cache)
        return user_dataset(folder, labels, task, columns=columns, kind=kind, seed=seed, read=read, cache=cache)
    found = dataset if isinstance(dataset, Dataset) else registry.datasets.create(dataset)
    if not isinstance(found, Dataset):
        raise DatasetError(f"dataset {dataset!r} is a {type(found).__name__}, not a protgraph Dataset")
    return found


def resolve_task(task: str | Task, dataset: Dataset) -> Task:
    """The task of a name: the registered one, or the usual one of the target that the dataset says it has.

    Raises
    ------
    DatasetError
        The dataset means something else by a registered name.
    """
    if isinstance(task, Task):
        return task
    target = dataset.target(task)
    if task not in registry.tasks:
        return default_task(target)
    found = registry.tasks.get(task)
    if not isinstance(found, Task):
        raise DatasetError(f"task {task!r} is a {type(found).__name__}, not a protgraph Task")
    ours, theirs = ((t.level, t.kind, t.size, t.names if target.names else ()) for t in (found.target, target))
    if ours != theirs:
        raise DatasetError(
            f"dataset {dataset.name!r} has {theirs} for {task!r}, a registered task with {ours} (level, kind, size, "
            "names).\nCall the dataset's task something else."
        )
    return found
