"""Checks of datasets: card, examples, splits, labels and counts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from protgraph import registry
from protgraph.data.datasets.dataset import Example, checked_examples, checked_labels, require_card
from protgraph.data.datasets.labels import ResidueLabels, absent_residues_error
from protgraph.errors import ProtgraphError
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.task.losses import known_labels
from protgraph.task.task import Task, default_task
from protgraph.testing.runner import NotApplicable, Runner

__all__ = ["counts", "dataset_builds", "examples", "labels", "separate_splits"]

#: Proteins of each split that are read, unless all are asked for.
_READ = 100


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
            checked = checked_examples(dataset, task)
            of_splits = [e.id for split in dataset.splits(task) for e in dataset.examples(task, split)]
        if sorted(of_splits) != sorted(e.id for e in checked):
            raise runner.failure(f"examples({task!r}, split) and examples({task!r}) differ")
        missing = [e for e in checked if dataset.reads_files and not e.path.exists()]
        if missing:
            raise runner.failure(f"file of {missing[0].id!r} is missing: {missing[0].path}")
        if not checked:
            raise runner.failure(f"task {task!r} has no examples")


def separate_splits(runner: Runner) -> None:
    """Check that no two splits share a file with the same chains, an id or a sequence."""
    dataset = runner.component.dataset
    for task in dataset.tasks():
        splits: dict[tuple[str, str], Example] = {}
        with runner.errors_as_failures("examples"):
            chosen = list(_chosen(runner, checked_examples(dataset, task)))
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


def labels(runner: Runner) -> None:
    """Check that labels fit the target and name residues that exist, or that the task derives them."""
    dataset = runner.component.dataset
    for name in dataset.tasks():
        target, known = dataset.target(name), 0
        task = default_task(target)
        with runner.errors_as_failures("labels"):
            chosen = list(_chosen(runner, checked_examples(dataset, name)))
            stored = checked_labels(dataset, name, chosen)
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
                known += int(known_labels(torch.from_numpy(task.labels(residues, protein_labels))).sum())
        if not known:
            raise runner.failure(f"no label of task {name!r} is known")


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


def _chosen(runner: Runner, found: list[Example]) -> Iterator[Example]:
    """Yield the first examples of each split, or all."""
    read: dict[str, int] = {}
    for example in found:
        read[example.split] = read.get(example.split, 0) + 1
        if runner.full or read[example.split] <= _READ:
            yield example
