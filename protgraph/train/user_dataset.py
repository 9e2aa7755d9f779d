"""A folder of one's own files as a dataset for the task that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from protgraph import registry
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.folder_index import label_columns
from protgraph.data.datasets.label_table import read_label_table
from protgraph.errors import DatasetError, UnknownNameError, suggest
from protgraph.featurize.file_cache import FileCache
from protgraph.structure.io.read_options import ReadOptions
from protgraph.task.task import Task

__all__ = ["find_folder", "user_dataset", "refuse_unasked", "tasks_without_labels"]


def find_folder(name: str) -> Path:
    """The folder of this name.

    Raises
    ------
    UnknownNameError
        There is none, and no dataset is called so either.
    """
    if Path(name).is_dir():
        return Path(name)
    known = registry.datasets.names()
    raise UnknownNameError(
        f"no dataset {name!r}, and no folder either.{suggest(Path(name).name, known)}\n"
        f"Known datasets: {', '.join(known)}; or give a folder of structure or FASTA files."
    )


def user_dataset(
    folder: str | Path,
    labels: str | Path | None,
    task: str | Task | None,
    *,
    columns: Sequence[str] | None = None,
    kind: str | None = None,
    seed: int = 0,
    read: ReadOptions | None = None,
    cache: Path,
) -> FolderDataset:
    """The files of a folder, for one task.

    Parameters
    ----------
    folder : str or Path
    labels : str or Path, optional
        Table of labels, of splits, or both; see :mod:`protgraph.data.datasets.folder`.
    task : str or Task, optional
        A label column of the table, or else a task that finds its labels in the structure or sequence; any other name
        is that of all label columns together, "labels" by default.
    columns : sequence of str, optional
        Label columns; the task is then one of them, whatever it is called.
    kind : str, optional
        What labels of the table are; see :class:`protgraph.data.datasets.folder.FolderDataset`.
    seed : int
        Of the random split.
    cache : Path
        Folder of prepared data.

    Raises
    ------
    DatasetError
        There are no labels, and the task needs some.
    """
    read = read or ReadOptions()
    there = [] if labels is None else label_columns(read_label_table(labels))
    common = {"seed": seed, "look": partial(FileCache(cache).fingerprint, read=read), "read_options": read}
    name = task.name if isinstance(task, Task) else task
    columns = [name] if columns is None and name in there else columns
    asked = task if isinstance(task, Task) or task is None else _registered(task)
    if columns is None and asked is not None and asked.derives_labels:
        return FolderDataset(folder, labels, task=asked.name, target=asked.target, **common)
    if labels is not None and (there or columns):
        return FolderDataset(folder, labels, task=name or "labels", columns=columns, kind=kind, **common)
    what = "no table of labels" if labels is None else f"no label column in {labels}"
    wants = "no task is named" if name is None else f"task {name!r} needs labels"
    raise DatasetError(
        f"folder {str(folder)!r}: {wants}, and there is {what}.\n"
        "Labels are a CSV: columns file and a label for one a protein; file, chain, res_id and a label for one a "
        f"residue.\nTasks that need none: {', '.join(tasks_without_labels())}."
    )


def refuse_unasked(datasets: Sequence[Dataset], *, where: str = "") -> None:
    """Take it for a slip where a table has labels, and every task that is asked finds its labels itself.

    Parameters
    ----------
    datasets : sequence of Dataset
        One for each task that is asked.
    where : str
        What an error begins with.

    Raises
    ------
    DatasetError
        It is so.
    """
    own = [dataset for dataset in datasets if isinstance(dataset, FolderDataset)]
    if own and not any(dataset.has_labels for dataset in own) and own[0].unused_columns:
        columns, asked = ", ".join(own[0].unused_columns), ", ".join(t for dataset in own for t in dataset.tasks())
        raise DatasetError(
            f"{where}no task asks for the labels of the table ({columns}): those of {asked} are found without it.\n"
            "Name the column to use it, or give a table of files and splits or clusters alone."
        )


def tasks_without_labels() -> list[str]:
    """Names of the registered tasks that find their labels in the structure or sequence."""
    broken = {problem.name for problem in registry.tasks.problems(load=True)}
    found = {name: registry.tasks.get(name) for name in registry.tasks.names() if name not in broken}
    return [name for name, task in found.items() if isinstance(task, Task) and task.derives_labels]


def _registered(name: str) -> Task | None:
    found = registry.tasks.get(name) if name in registry.tasks else None
    return found if isinstance(found, Task) else None
