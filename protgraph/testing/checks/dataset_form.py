"""Checks of datasets: card, examples, splits, labels and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from protgraph import registry
from protgraph.data.datasets.dataset import Example, read_examples, read_task, require_card
from protgraph.data.datasets.labels import ResidueLabels, absent_residues_error
from protgraph.errors import ProtgraphError
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.task.losses import known_labels
from protgraph.task.task import Task, default_task
from protgraph.testing.runner import NotApplicable, Runner

__all__ = ["counts", "dataset_builds", "examples", "labels", "separate_splits"]

#: Proteins of each split that are read, unless all are asked for.
_READ = 100
#: Residues of a word, words of a sequence that is compared, and the share of them that makes it a copy.
_WORD, _FEWEST_WORDS, _COPY = 8, 20, 0.8
#: Dependence of labels on residue types that chance does not reach, and a ratio of two that is not by chance.
_SIGNIFICANT, _BETTER = 60.0, 1.5


def dataset_builds(runner: Runner) -> None:
    """Check that it is a dataset with a card that has its registry name."""
    with runner.errors_as_failures("it cannot be built"):
        dataset = runner.component.dataset
        require_card(dataset, name=runner.component.name)
    if runner.component.definition is None and dataset.name != runner.component.name:
        raise runner.failure(f"the name on its card is {dataset.name!r}. Use the registry name.")
    if not getattr(dataset, "is_prepared", True):
        raise NotApplicable(f"it is not prepared: protgraph data prepare {dataset.name}")


def examples(runner: Runner) -> None:
    """Check that examples have unique ids, files that exist, and splits of the card."""
    dataset = runner.component.dataset
    for task in dataset.tasks():
        with runner.errors_as_failures("examples"):
            checked = read_examples(dataset, task)
            of_splits = [e.id for split in dataset.splits(task) for e in dataset.examples(task, split)]
        if sorted(of_splits) != sorted(e.id for e in checked):
            raise runner.failure(f"examples({task!r}, split) and examples({task!r}) differ")
        missing = [e for e in checked if dataset.reads_files and not e.path.exists()]
        if missing:
            raise runner.failure(f"file of {missing[0].id!r} is missing: {missing[0].path}")
        if not checked:
            raise runner.failure(f"task {task!r} has no examples")


def separate_splits(runner: Runner) -> None:
    """Check that no two splits share a file with the same chains, an id, a sequence or nearly all of one."""
    dataset = runner.component.dataset
    for task in dataset.tasks():
        splits: dict[tuple[str, str], Example] = {}
        words = _SequenceWords()
        with runner.errors_as_failures("examples"):
            chosen = list(_chosen(runner, read_examples(dataset, task)))
        for example in chosen:
            with runner.errors_as_failures(f"reading {example.id!r}"):
                residues = dataset.read(example)
            keys = [("id", example.id)]
            if (residues.aatype != UNKNOWN).any():
                keys.append(("sequence", residues.sequence))
            for key_name, value in keys:
                first = splits.setdefault((key_name, value), example)
                if first.split != example.split:
                    raise runner.failure(
                        f"{first.id!r} in split {first.split!r} and {example.id!r} in "
                        f"{example.split!r} have the same {key_name}. Keep them in one split."
                    )
            if copied := words.add(example, residues.sequence):
                raise runner.failure(f"{example.id!r} in split {example.split!r} is {copied}. Keep them in one split.")


class _SequenceWords:
    """Words of a few residues of all sequences, to find copies in another split with a few residues more or fewer."""

    def __init__(self) -> None:
        self.first: dict[str, Example] = {}

    def add(self, example: Example, sequence: str) -> str:
        """Add a sequence; return of which protein of another split it is a copy, in words, or "" if of none."""
        words = {sequence[i : i + _WORD] for i in range(len(sequence) - _WORD + 1)}
        words = {word for word in words if ALPHABET[UNKNOWN] not in word}
        relatives = [self.first[word] for word in words if word in self.first]
        owners = Counter(relative.id for relative in relatives if relative.split != example.split)
        for word in words:
            self.first.setdefault(word, example)
        if not owners or len(words) < _FEWEST_WORDS:
            return ""
        owner, common = owners.most_common(1)[0]
        if common <= _COPY * len(words):
            return ""
        share = f"{common / len(words):.0%} of its words of {_WORD} residues"
        return f"a copy of {owner!r} in another split: {share} are the same"


def labels(runner: Runner) -> None:
    """Check that labels fit the target and name residues that exist, or that the task derives them."""
    dataset = runner.component.dataset
    for name in dataset.tasks():
        target, known, pairs = dataset.target(name), 0, _TypesAndLabels()
        task = default_task(target)
        with runner.errors_as_failures("labels"):
            data = read_task(dataset, name)
            chosen = list(_chosen(runner, data.examples))
            stored = data.labels_of(chosen)
        if all(one is None for one in stored):
            _require_derivation(runner, name)
            continue
        for example, protein_labels in zip(chosen, stored, strict=True):
            if protein_labels is None:
                raise runner.failure(f"task {name!r} has labels, but {example.id!r} has none")
            with runner.errors_as_failures(f"labels of {example.id!r}"):
                residues = dataset.read(example)
                if isinstance(protein_labels, ResidueLabels) and (absent := protein_labels.absent(residues)).any():
                    raise absent_residues_error([(example.id, protein_labels, absent)])
                y = task.labels(residues, protein_labels)
                known += int(known_labels(torch.from_numpy(y)).sum())
                if target.level == "node" and target.kind == "classification":
                    pairs.add(residues.aatype, y)
        if not known:
            raise runner.failure(f"no label of task {name!r} is known")
        if shift := pairs.better_shift():
            raise runner.failure(
                f"labels of task {name!r} belong to other residues: they fit the types of the residues {shift:+d} "
                "along the chain better than those of their own. Are they counted from 0 and from 1?"
            )


class _TypesAndLabels:
    """Residue types and classes, to find labels that are shifted along the chain.

    The information that a type has about a label is the largest for the residue itself, for properties of residues.
    """

    def __init__(self) -> None:
        self.types: dict[int, list[np.ndarray]] = {shift: [] for shift in (-1, 0, 1)}
        self.labels: list[np.ndarray] = []

    def add(self, aatype: np.ndarray, y: np.ndarray) -> None:
        """Add one protein: types ``(N,)`` and classes ``(N,)``; the two end residues have one neighbor only."""
        middle = np.arange(1, len(y) - 1)
        middle = middle[y[middle] >= 0]
        self.labels.append(y[middle])
        for shift, types in self.types.items():
            types.append(aatype[middle + shift])

    def better_shift(self) -> int:
        """Return the shift by which labels fit the types of residues better; 0 if there is none."""
        labels = np.concatenate([*self.labels, np.zeros(0, np.int64)])
        if len(labels) == 0:
            return 0
        dependence = {shift: _dependence(np.concatenate(types), labels) for shift, types in self.types.items()}
        best = max(dependence, key=lambda shift: dependence[shift])
        return best if dependence[best] > max(_SIGNIFICANT, _BETTER * dependence[0]) else 0


def _dependence(types: np.ndarray, labels: np.ndarray) -> float:
    """Return the G statistic of two categories minus its mean if they are independent, its degrees of freedom."""
    table = np.zeros((UNKNOWN + 1, int(labels.max()) + 1))
    np.add.at(table, (types, labels), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    filled = table > 0
    statistic = 2 * (table[filled] * np.log(table[filled] / expected[filled])).sum()
    degrees_of_freedom = (table.any(1).sum() - 1) * (table.any(0).sum() - 1)
    return float(statistic - degrees_of_freedom)


def counts(runner: Runner) -> None:
    """Check that all proteins, residues and labels are as many as the card counts."""
    if not runner.full:
        raise NotApplicable("it reads all proteins: give --full")
    dataset = runner.component.dataset
    for task in dataset.tasks():
        with runner.errors_as_failures(f"counts of task {task!r}"):
            found = dataset.check(task)
        for split, expected in dataset.card.tasks[task].counts.items():
            got = found.get(split)
            for name in ("proteins", "residues", "labeled", "per_class"):
                stated = getattr(expected, name)
                if stated not in (None, ()) and (got is None or getattr(got, name) != stated):
                    number = None if got is None else getattr(got, name)
                    raise runner.failure(f"task {task!r}, split {split!r}: {name} = {number}; the card has {stated}")


def _require_derivation(runner: Runner, name: str) -> None:
    try:
        task = registry.tasks.get(name)
    except ProtgraphError:
        task = None
    if not (isinstance(task, Task) and task.derives_labels):
        raise runner.failure(f"labels of task {name!r} are None, and no registered task of this name derives them")


def _chosen(runner: Runner, found: Sequence[Example]) -> Iterator[Example]:
    """Yield the first examples of each split, or all."""
    read: dict[str, int] = {}
    for example in found:
        read[example.split] = read.get(example.split, 0) + 1
        if runner.full or read[example.split] <= _READ:
            yield example
