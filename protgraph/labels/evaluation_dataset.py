"""Evaluation on other datasets: their proteins as further test splits, or as training, without homologs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from protgraph.data.datasets.dataset import Dataset, DatasetView, Example, Origin, card_of_view, content_version
from protgraph.errors import DatasetError
from protgraph.registry import relatives

__all__ = ["Evaluation", "add_evaluations", "combine_evaluations", "train_on_other"]

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


def add_evaluations(
    base: Dataset, task: str, evaluations: Sequence[Evaluation], *, cache: str | Path | None = None
) -> tuple[Dataset, str]:
    """Add the splits of other datasets, and leave out the proteins of train and val that are homologs of theirs."""
    if not evaluations:
        return base, ""
    removed, text = training_homologs(base, task, evaluations, cache=cache)
    return combine_evaluations(base, task, evaluations, removed), text


def combine_evaluations(
    base: Dataset, task: str, evaluations: Sequence[Evaluation], left_out: Sequence[str]
) -> DatasetView:
    """Return one task of a dataset, with the splits of other datasets added as ``NAME_SPLIT``."""
    removed = set(left_out)
    examples = [example for example in base.examples(task) if example.id not in removed]
    origins: dict[str, Origin] = {}
    for evaluation in evaluations:
        require_fit(base, task, evaluation)
        for example in evaluation.examples:
            renamed = evaluation.renamed(example)
            origins[renamed.id] = Origin(evaluation.dataset, evaluation.task, example)
            examples.append(renamed)
    # a card with the content as version, and without scores that are of other splits
    contents = [base.version]
    for evaluation in evaluations:
        contents.append(f"{evaluation.dataset.name} {evaluation.dataset.version} {evaluation.task}")
    version = f"{base.version}-{content_version((contents, sorted(removed)))}"
    splits = [example.split for example in examples]
    card = card_of_view(base, task, splits, version=version, first=base.splits(task))
    scored = replace(card.tasks[task], floors=(), published=())
    card = replace(card, tasks=MappingProxyType({task: scored}))
    return DatasetView(base, task, examples, card, origins=origins)


def train_on_other(
    base: Dataset, task: str, source: Dataset, source_task: str, *, cache: str | Path | None = None
) -> DatasetView:
    """Return one task of a dataset, tested on its own splits and trained on another dataset.

    Homologs of the tested proteins are not trained on; the split rule of the card has their number.
    """
    tested = base.examples(task)
    if present := sorted({e.split for e in tested} & set(_USED)):
        raise DatasetError(
            f"dataset {base.name!r} has proteins in split {present[0]!r}; training proteins of {source.name!r} "
            "cannot be added. Only a dataset of tested splits can be trained on another one."
        )
    require_fit(source, source_task, Evaluation(base, task))
    removed, left_out = training_homologs(source, source_task, [Evaluation(base, task)], cache=cache)
    origins = {}
    for example in source.examples(source_task):
        if example.split in _USED and example.id not in removed:
            origins[f"{source.name}:{example.id}"] = Origin(source, source_task, example)
    examples = [replace(origin.example, id=name) for name, origin in origins.items()] + list(tested)
    version = content_version((base.version, source.name, source.version, source_task, sorted(removed)))
    splits = [example.split for example in examples]
    card = card_of_view(base, task, splits, version=f"{base.version}-{version}", first=_USED)
    rule = f"{base.card.split_rule} Trained on {source.name}, without {left_out}."
    return DatasetView(base, task, examples, replace(card, split_rule=rule), origins=origins)


def training_homologs(
    base: Dataset, task: str, evaluations: Sequence[Evaluation], *, cache: str | Path | None = None
) -> tuple[list[str], str]:
    """Return the examples of train and val with a homolog in other datasets, and their number as text.

    The search is the entry point ``homologs`` of the group ``protgraph.relatives``.
    """
    used = [example for example in base.examples(task) if example.split in _USED]
    find = relatives.get("homologs")
    related = find(base, used, [(e.dataset, e.examples) for e in evaluations], cache=cache)
    removed = set(related.ids)
    counts = []
    for split in _USED:
        members = [example.id for example in used if example.split == split]
        counts.append(f"{len(removed.intersection(members))} of {len(members)}")
    names = ", ".join(evaluation.dataset.name for evaluation in evaluations)
    text = f"homologs of {names} ({related.rule}): {counts[0]} proteins of train, {counts[1]} of val"
    return list(related.ids), text


def require_fit(base: Dataset, task: str, evaluation: Evaluation) -> None:
    """Raise unless labels mean the same kind of value and files are read by the pipeline in the same way."""
    dataset = evaluation.dataset
    target = base.target(task)
    tested = dataset.target(evaluation.task)
    kind_of_target = (target.level, target.kind, target.size)
    kind_of_tested = (tested.level, tested.kind, tested.size)
    if kind_of_target != kind_of_tested:
        raise DatasetError(
            f"task {evaluation.task!r} of dataset {dataset.name!r} has {kind_of_tested} (level, kind, size), and "
            f"{task!r} of {base.name!r} has {kind_of_target}. Evaluate on a task of the same kind."
        )
    both_read_files = base.reads_files and dataset.reads_files
    if not both_read_files or dataset.read_options != base.read_options:
        raise DatasetError(
            f"datasets {base.name!r} and {dataset.name!r} read their files in different ways. Give files and read "
            "options that are the same for both."
        )
