"""A dataset with the proteins of other datasets as further test splits, and without their homologs in training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.datasets.wrapped_dataset import WrappedDataset
from protgraph.errors import DatasetError
from protgraph.similarity import HomologyRule, find_homologs
from protgraph.structure.io import cache_dir
from protgraph.train.chain_sequences import read_chain_sequences

__all__ = ["RULE", "Evaluation", "EvaluationDataset", "add_evaluations", "require_fit", "training_homologs"]

RULE = HomologyRule(coverage_of="shorter")
"""Proteins of training and validation with such a chain of an evaluated dataset are left out."""
_USED = ("train", "val")


class Evaluation(NamedTuple):
    """Task of another dataset on which a model is evaluated."""

    dataset: Dataset
    task: str

    @property
    def examples(self) -> list[Example]:
        """The examples of the task."""
        return self.dataset.examples(self.task)

    def renamed(self, example: Example) -> Example:
        """Return an example with the name of the dataset in its id and split."""
        return replace(example, id=f"{self.dataset.name}:{example.id}", split=f"{self.dataset.name}_{example.split}")


class EvaluationDataset(WrappedDataset):
    """One task of a dataset, with the splits of other datasets added as ``NAME_SPLIT``.

    Parameters
    ----------
    base : Dataset
        Dataset to train on.
    task : str
    evaluations : sequence of Evaluation
        Their labels have the level, kind and number of the task; names may differ.
    left_out : iterable of str
        Examples of the base dataset that are not used.

    Raises
    ------
    DatasetError
        A dataset or its target does not fit.
    """

    def __init__(self, base: Dataset, task: str, evaluations: Sequence[Evaluation], left_out: Iterable[str]) -> None:
        super().__init__(base)
        excluded = set(left_out)
        self._examples = [example for example in base.examples(task) if example.id not in excluded]
        self._owners: dict[str, tuple[Evaluation, Example]] = {}
        for evaluation in evaluations:
            require_fit(base, task, evaluation)
            renamed = {evaluation.renamed(example): example for example in evaluation.examples}
            self._owners |= {new.id: (evaluation, example) for new, example in renamed.items()}
            self._examples += renamed
        names = [example.split for example in self._examples]
        order = dict.fromkeys([*base.splits(task), *names])
        counts = MappingProxyType({name: SplitCount(names.count(name)) for name in order if name in names})
        card = replace(base.card.tasks[task], counts=counts, floors=(), published=())
        parts = [base.version, *(f"{e.dataset.name} {e.dataset.version} {e.task}" for e in evaluations)]
        version = hashlib.sha256(repr((parts, sorted(excluded))).encode()).hexdigest()[:12]
        tasks = MappingProxyType({task: card})
        self.card = replace(base.card, version=f"{base.version}-{version}", splits=counts, tasks=tasks)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example, from its own dataset."""
        if example.id not in self._owners:
            return self.base.labels(task, example)
        evaluation, original = self._owners[example.id]
        return evaluation.dataset.labels(evaluation.task, original)


def add_evaluations(
    base: Dataset, task: str, evaluations: Sequence[Evaluation], *, cache: str | Path | None = None
) -> tuple[Dataset, str]:
    """Add the splits of other datasets, and leave out the proteins of train and val that are homologs of theirs.

    Parameters
    ----------
    base : Dataset
    task : str
    evaluations : sequence of Evaluation
        Without any, the base dataset is returned.
    cache : str or Path, optional
        Folder of finished alignments; see :func:`protgraph.structure.io.cache_dir`.

    Returns
    -------
    tuple
        The dataset, and a sentence about the proteins that were left out.
    """
    if not evaluations:
        return base, ""
    removed, text = training_homologs(base, task, evaluations, cache=cache)
    return EvaluationDataset(base, task, evaluations, removed), text


def training_homologs(
    base: Dataset, task: str, evaluations: Sequence[Evaluation], *, cache: str | Path | None = None
) -> tuple[list[str], str]:
    """Return the examples of train and val with a homolog in other datasets (:data:`RULE`), and their number in words.

    Parameters
    ----------
    base, task, evaluations, cache
        As of :func:`add_evaluations`.
    """
    used = [example for example in base.examples(task) if example.split in _USED]
    sequences, groups, owner = [], [], []
    for group, (dataset, examples) in enumerate([(base, used), *((e.dataset, e.examples) for e in evaluations)]):
        chains = read_chain_sequences(dataset, examples)
        sequences += chains.sequences
        groups += [min(group, 1)] * len(chains.sequences)
        owner += [chains.examples[i] for i in chains.example]
    found = find_homologs(sequences, RULE, groups=groups, cache=cache_dir(cache))
    pairs = np.stack([found.first, found.second], 1)
    removed = {owner[i].id: owner[i] for i in sorted(set(pairs.flatten().tolist())) if groups[i] == 0}
    counts = [f"{sum(e.split == s for e in removed.values())} of {sum(e.split == s for e in used)}" for s in _USED]
    names = ", ".join(evaluation.dataset.name for evaluation in evaluations)
    text = f"homologs of {names} ({RULE.text}): {counts[0]} proteins of train, {counts[1]} of val"
    return list(removed), text


def require_fit(base: Dataset, task: str, evaluation: Evaluation) -> None:
    """Raise unless labels mean the same kind of value and files are read by the pipeline in the same way."""
    dataset, target, theirs = evaluation.dataset, base.target(task), evaluation.dataset.target(evaluation.task)
    ours, others = ((t.level, t.kind, t.size) for t in (target, theirs))
    if ours != others:
        raise DatasetError(
            f"task {evaluation.task!r} of dataset {dataset.name!r} has {others} (level, kind, size), and {task!r} of "
            f"{base.name!r} has {ours}. Evaluate on a task of the same kind."
        )
    if not (base.reads_files and dataset.reads_files) or dataset.read_options != base.read_options:
        raise DatasetError(
            f"datasets {base.name!r} and {dataset.name!r} read their files in different ways. Give files and read "
            "options that are the same for both."
        )
