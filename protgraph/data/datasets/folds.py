"""Folds of a dataset for cross-validation: groups stay together, labels are balanced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from protgraph.data.datasets.dataset import DatasetView, resplit
from protgraph.data.datasets.labels import SHOWN, Labels, ProteinLabels, ResidueLabels
from protgraph.data.datasets.splits import LabelStrata, group_split, label_strata, linked_groups
from protgraph.errors import DatasetError, OptionError, list_first
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.data.datasets.target import Target

__all__ = ["FoldAssignment", "Folds", "assign_folds", "fold_datasets"]

Folds = int | Literal["leave-one-group-out"]

_VALIDATION = 0.125  # of the proteins outside the test fold, as in 80/10/10


@dataclass(frozen=True, eq=False)
class FoldAssignment:
    """Assignment of the examples of a task to test folds."""

    ids: tuple[str, ...]  # the examples with a known label, in the order of the dataset
    fold: np.ndarray  # ``(P,)`` int64 from 0, the fold in which each of them is tested
    groups: tuple[int, ...]  # group of each example
    # ``(P, K)`` label counts in the balanced strata; K is 0 if the labels are computed from structures
    counts: np.ndarray
    required: np.ndarray  # ``(K,)``; see :func:`protgraph.data.datasets.splits.group_split`
    rule: str

    @property
    def number(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1


def assign_folds(dataset: Dataset, task: str, folds: Folds, *, seed: int = 0) -> FoldAssignment:
    """Assign each example with a known label to one test fold; linked examples are in the same fold.

    Links are those of :meth:`Dataset.links`: equal sequences, clusters of the label table, chains of one file. The
    splits of the dataset are ignored.
    """
    _check_folds(folds)
    examples, labels, unlabeled = [], [], set()  # examples with a known label, and ids of those without
    for example in dataset.examples(task):
        label = dataset.labels(task, example)
        if _has_label(label):
            examples.append(example)
            labels.append(label)
        else:
            unlabeled.add(example.id)
    groups = linked_groups([dataset.links(example) for example in examples])
    count = len(set(groups))
    least = max(3, folds) if isinstance(folds, int) else 3
    if count < least:
        raise DatasetError(
            f"dataset {dataset.name!r}: {count} independent groups of proteins, {folds} folds. Proteins with a common "
            "sequence or cluster are one group; each fold needs one, and training and validation too. Use fewer folds, "
            "or add proteins."
        )
    strata, counts = _strata(labels, dataset.target(task))
    required = np.zeros(0) if strata is None else strata.required
    ids = tuple(example.id for example in examples)
    by = _grouping(unlabeled.difference(ids))
    if not isinstance(folds, int):
        rule = f"leave one of {count} groups out; {by}"
        return FoldAssignment(ids, np.array(groups), tuple(groups), counts, required, rule)
    name_of_group = [_name(examples, groups, group) for group in range(count)]
    names = [name_of_group[group] for group in groups]
    fractions = dict.fromkeys(map(str, range(folds)), 1 / folds)
    fold = group_split(names, fractions=fractions, seed=seed, counts=counts, required=required)
    rule = f"{folds} folds, seed {seed}; {by}"
    if strata is not None:
        rule += f"; {strata.text} are balanced over the folds"
    return FoldAssignment(ids, np.array(fold, dtype=np.int64), tuple(groups), counts, required, rule)


def _grouping(unlabeled: Collection[str]) -> str:
    """Return how folds group examples, and which examples are left out."""
    text = "examples that share a sequence or cluster are in the same fold"
    if unlabeled:
        names = list_first(sorted(unlabeled), SHOWN)
        text += f"; {count_noun(len(unlabeled), 'example')} without a label not used: {names}"
    return text


def _check_folds(folds: Folds) -> None:
    if folds == "leave-one-group-out":
        return
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise OptionError(f"folds = {folds!r}. Allowed: a whole number from 2, or 'leave-one-group-out'.")


def fold_datasets(dataset: Dataset, task: str, assignment: FoldAssignment, *, seed: int = 0) -> list[DatasetView]:
    """Return the dataset of each fold: its examples are ``test``, an eighth of the others ``val``, the rest ``train``.

    Validation is drawn at random by group from the other folds, with balanced labels.
    """
    by_id = {example.id: example for example in dataset.examples(task)}
    examples = [by_id[name] for name in assignment.ids]
    groups = np.array(assignment.groups)
    names = [_name(examples, assignment.groups, group) for group in range(groups.max() + 1)]
    datasets = []
    for k in range(assignment.number):
        not_tested = np.flatnonzero(assignment.fold != k)
        drawn = group_split(
            [names[groups[i]] for i in not_tested],
            fractions={"train": 1 - _VALIDATION, "val": _VALIDATION},
            seed=seed + k,
            counts=assignment.counts[not_tested],
            required=assignment.required,
        )
        split = dict.fromkeys(range(len(examples)), "test") | dict(zip(not_tested.tolist(), drawn, strict=True))
        splits = {example.id: split[i] for i, example in enumerate(examples)}
        rule = f"fold {k + 1} of {assignment.number}; {assignment.rule}"
        datasets.append(resplit(dataset, task, splits, rule))
    return datasets


def _name(examples: Sequence, groups: Sequence[int], group: int) -> str:
    """Return the first id in a group, which does not depend on the order of examples."""
    return min(example.id for example, own in zip(examples, groups, strict=True) if own == group)


def _has_label(labels: Labels | None) -> bool:
    """Return False if all labels of an example are unknown; computed labels may be known."""
    if not isinstance(labels, ResidueLabels | ProteinLabels):
        return True
    values = np.asarray(labels.values if isinstance(labels, ResidueLabels) else labels.value)
    return bool((values >= 0 if values.dtype.kind in "iu" else ~np.isnan(values)).any())


def _strata(labels: Sequence[Labels | None], target: Target) -> tuple[LabelStrata | None, np.ndarray]:
    """Return the strata of all labels, and the counts ``(P, K)`` of each example."""
    nothing = None, np.zeros((len(labels), 0))
    stated = [label for label in labels if isinstance(label, ResidueLabels | ProteinLabels)]
    if len(stated) < len(labels):
        return nothing
    rows = [label.values if isinstance(label, ResidueLabels) else np.asarray(label.value)[None] for label in stated]
    values = np.concatenate([np.asarray(label) for label in rows])
    values = values if target.kind == "classification" else values.astype(np.float64).reshape(len(values), -1)
    strata = label_strata(values, target)
    if strata is None:
        return nothing
    ends = np.cumsum([len(label) for label in rows])
    counts = [strata.of(np.arange(end - len(label), end)) for end, label in zip(ends, rows, strict=True)]
    return strata, np.array(counts)
