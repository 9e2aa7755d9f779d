"""Views of a dataset: in other splits, with one more task, or with examples of other datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError
from protgraph.structure.residues.residues import Residues

__all__ = ["DatasetView", "Origin", "add_derived_task", "card_of_view", "content_version", "held_out", "resplit"]

_NO_ORIGINS: Mapping[str, Origin] = MappingProxyType({})


class Origin(NamedTuple):
    """Dataset, task and example that an example of a view comes from."""

    dataset: Dataset
    task: str
    example: Example


class DatasetView(Dataset):
    """A dataset in which one task has other examples; another dataset reads the proteins.

    ``task``: task whose examples are given. Other tasks of the card are those of the base. ``origins``: example id to
    its origin, of examples of other datasets. ``is_derived``: the task computes its labels.
    """

    def __init__(
        self,
        base: Dataset,
        task: str,
        examples: Sequence[Example],
        card: DatasetCard,
        *,
        origins: Mapping[str, Origin] = _NO_ORIGINS,
        is_derived: bool = False,
    ) -> None:
        self.base, self.card, self.read_options = base, card, base.read_options
        self._viewed, self._examples = task, list(examples)
        self._origins, self._is_derived = origins, is_derived

    @property
    def source(self) -> Dataset:
        """The dataset that reads the proteins."""
        return self.base.source

    @property
    def reads_files(self) -> bool:
        """Whether the base dataset leaves reading to the pipeline."""
        return self.base.reads_files

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a task, of all splits or of one."""
        self._task(task)
        if task != self._viewed:
            return self.base.examples(task, split)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example, from its own dataset; None if the task computes them."""
        if self._is_derived and task == self._viewed:
            return None
        origin = self._origins.get(example.id)
        if origin is not None:
            return origin.dataset.labels(origin.task, origin.example)
        return self.base.labels(task, example)

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of an example in its own dataset."""
        origin = self._origins.get(example.id)
        return self.base.links(example) if origin is None else origin.dataset.links(origin.example)

    def read(self, example: Example) -> Residues:
        """Return the residues of one protein, read by the base dataset."""
        return self.base.read(example)


def resplit(base: Dataset, task: str, splits: Mapping[str, str], rule: str) -> DatasetView:
    """Return the examples of one task of a dataset, in other splits.

    The version depends on that of the dataset and on the splits.
    """
    examples = [replace(example, split=splits[example.id]) for example in base.examples(task) if example.id in splits]
    version = content_version((base.version, sorted(splits.items())))
    card = card_of_view(base, task, splits.values(), version=version, first=("train", "val", "test"))
    return DatasetView(base, task, examples, replace(card, split_rule=rule))


def add_derived_task(base: Dataset, task: str, target: Target) -> DatasetView:
    """Return a dataset with one more task: all its proteins in their splits, without labels.

    The examples are those of all other tasks, each once. Name, version and files are those of the dataset.

    Parameters
    ----------
    task : str
        Name of the task, which computes its labels.

    Raises
    ------
    DatasetError
        An example is in different splits for different tasks.
    """
    examples = _examples_of_all_tasks(base)
    counts = _count_splits(example.split for example in examples)
    added = TaskCard(target, "derived by the task", "all proteins of the other tasks", counts)
    card = replace(base.card, tasks=MappingProxyType({**base.card.tasks, task: added}))
    return DatasetView(base, task, examples, card, is_derived=True)


def card_of_view(
    base: Dataset, task: str, splits: Iterable[str], *, version: str, first: Sequence[str] = ()
) -> DatasetCard:
    """Return the card of a dataset with one task and the splits of its examples, those of ``first`` before others."""
    counts = _count_splits(splits, first=first)
    tasks = MappingProxyType({task: replace(base.card.tasks[task], counts=counts)})
    return replace(base.card, version=version, splits=counts, tasks=tasks)


def content_version(content: object) -> str:
    """Return a version that changes with plain data."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def _count_splits(splits: Iterable[str], *, first: Sequence[str] = ()) -> Mapping[str, SplitCount]:
    names = list(splits)
    order = [name for name in dict.fromkeys([*first, *names]) if name in names]
    return MappingProxyType({name: SplitCount(names.count(name)) for name in order})


def _examples_of_all_tasks(dataset: Dataset) -> list[Example]:
    """Return the examples of all tasks, each once, in the order of the splits and tasks."""
    examples: dict[str, Example] = {}
    for task in dataset.tasks():
        for example in dataset.examples(task):
            known = examples.setdefault(example.id, example)
            if known.split != example.split:
                raise DatasetError(
                    f"dataset {dataset.name!r}: example {example.id!r} is in split {known.split!r} of one task and in "
                    f"{example.split!r} of another. A task that is not on the card needs one split for each example."
                )
    order = {split: number for number, split in enumerate(dataset.card.splits)}
    return sorted(examples.values(), key=lambda example: order[example.split])


def held_out(dataset: Dataset, task: str) -> Dataset:
    """Return a dataset without its training split, in which a model that is not trained has nothing to read."""
    splits = {example.id: example.split for example in dataset.examples(task) if example.split != "train"}
    return resplit(dataset, task, splits, f"{dataset.card.split_rule}; without train")
