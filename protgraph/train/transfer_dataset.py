"""A dataset without a training split, with the training and validation proteins of another one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.datasets.wrapped_dataset import WrappedDataset
from protgraph.errors import DatasetError
from protgraph.train.evaluation_dataset import Evaluation, require_fit, training_homologs

__all__ = ["TransferDataset"]

_TAKEN = ("train", "val")


class TransferDataset(WrappedDataset):
    """One task of a dataset, tested on its own splits and trained on another dataset.

    Homologs of the tested proteins (:data:`~protgraph.train.evaluation_dataset.RULE`) are not trained on.

    Parameters
    ----------
    base : Dataset
        Dataset to test on; it has no training split.
    task : str
    source : Dataset
        Dataset whose splits train and val are used.
    source_task : str
        Its labels have the level, kind and number of the task; names may differ.
    cache : str or Path, optional
        Folder of finished alignments; see :func:`protgraph.structure.io.cache_dir`.

    Attributes
    ----------
    left_out : str
        A sentence about the proteins that are not trained on.

    Raises
    ------
    DatasetError
        The base dataset has a training split, or the other one does not fit.
    """

    def __init__(
        self, base: Dataset, task: str, source: Dataset, source_task: str, *, cache: str | Path | None = None
    ) -> None:
        super().__init__(base)
        own = base.examples(task)
        if present := sorted({e.split for e in own} & set(_TAKEN)):
            raise DatasetError(
                f"dataset {base.name!r} has proteins in split {present[0]!r}; training proteins of {source.name!r} "
                "cannot be added. Only a dataset of tested splits can be trained on another one."
            )
        require_fit(source, source_task, Evaluation(base, task))
        removed, self.left_out = training_homologs(source, source_task, [Evaluation(base, task)], cache=cache)
        self._other, self._other_task = source, source_task
        kept = [e for e in source.examples(source_task) if e.split in _TAKEN and e.id not in removed]
        self._owners = {f"{source.name}:{e.id}": e for e in kept}
        self._examples = [replace(e, id=name) for name, e in self._owners.items()] + list(own)
        names = [example.split for example in self._examples]
        counts = MappingProxyType({name: SplitCount(names.count(name)) for name in dict.fromkeys([*_TAKEN, *names])})
        card = replace(base.card.tasks[task], counts=counts)
        parts = base.version, source.name, source.version, source_task, sorted(removed)
        version = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
        tasks = MappingProxyType({task: card})
        rule = f"{base.card.split_rule} Trained on {source.name}, without {self.left_out}."
        self.card = replace(base.card, version=f"{base.version}-{version}", splits=counts, tasks=tasks, split_rule=rule)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example, from its own dataset."""
        if example.id in self._owners:
            return self._other.labels(self._other_task, self._owners[example.id])
        return self.base.labels(task, example)

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of an example in its own dataset."""
        if example.id in self._owners:
            return self._other.links(self._owners[example.id])
        return self.base.links(example)
