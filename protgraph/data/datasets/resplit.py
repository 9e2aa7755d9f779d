"""A dataset in other splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.datasets.wrapped_dataset import WrappedDataset

__all__ = ["ResplitDataset"]


class ResplitDataset(WrappedDataset):
    """The examples of one task of a dataset, in other splits.

    The version depends on that of the dataset and on the splits.

    Parameters
    ----------
    base : Dataset
    task : str
    splits : mapping of str to str
        Split of each example, by its id; other examples are not used.
    rule : str
        Rule of the assignment, for the card.
    """

    def __init__(self, base: Dataset, task: str, splits: Mapping[str, str], rule: str) -> None:
        super().__init__(base)
        self._examples = [
            replace(example, split=splits[example.id]) for example in base.examples(task) if example.id in splits
        ]
        names = list(splits.values())
        order = [name for name in ("train", "val", "test") if name in names]
        order += [name for name in dict.fromkeys(names) if name not in order]
        counts = MappingProxyType({name: SplitCount(names.count(name)) for name in order})
        card = replace(base.card.tasks[task], counts=counts)
        text = repr((base.version, sorted(splits.items())))
        version = hashlib.sha256(text.encode()).hexdigest()[:12]
        tasks = MappingProxyType({task: card})
        self.card = replace(base.card, version=version, split_rule=rule, splits=counts, tasks=tasks)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None if the task computes them."""
        return self.base.labels(task, example)
