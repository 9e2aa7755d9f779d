"""Dataset with one more task, whose labels are computed from the proteins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

from protgraph.data.datasets.card import SplitCount, TaskCard
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.datasets.target import Target
from protgraph.data.datasets.wrapped_dataset import WrappedDataset
from protgraph.errors import DatasetError

__all__ = ["DerivedTaskDataset"]


class DerivedTaskDataset(WrappedDataset):
    """A dataset with one more task: all its proteins in their splits, without labels.

    The examples are those of all other tasks, each once. Name, version and files are those of the dataset.

    Parameters
    ----------
    base : Dataset
    task : str
        Name of the task.
    target : Target

    Raises
    ------
    DatasetError
        An example is in different splits for different tasks.
    """

    def __init__(self, base: Dataset, task: str, target: Target) -> None:
        super().__init__(base)
        self._added = task
        self._examples = _all_examples(base)
        counts: dict[str, SplitCount] = {}
        for example in self._examples:
            counts[example.split] = counts.get(example.split, SplitCount(0)) + SplitCount(1)
        card = TaskCard(target, "derived by the task", "all proteins of the other tasks", MappingProxyType(counts))
        self.card = replace(base.card, tasks=MappingProxyType({**base.card.tasks, task: card}))

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a task, of all splits or of one."""
        if task != self._added:
            return self.base.examples(task, split)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None for the added task, which computes them."""
        return None if task == self._added else self.base.labels(task, example)


def _all_examples(dataset: Dataset) -> list[Example]:
    """Return the examples of all tasks, each once, in the order of the tasks."""
    found: dict[str, Example] = {}
    for example in _examples(dataset):
        first = found.setdefault(example.id, example)
        if first.split != example.split:
            raise DatasetError(
                f"dataset {dataset.name!r}: example {example.id!r} is in split {first.split!r} of one task and in "
                f"{example.split!r} of another. A task that is not on the card needs one split for each example."
            )
    order = {split: number for number, split in enumerate(dataset.card.splits)}
    return sorted(found.values(), key=lambda example: order[example.split])


def _examples(dataset: Dataset) -> Iterator[Example]:
    for task in dataset.tasks():
        yield from dataset.examples(task)
