"""Tasks of the probes: dataset, labels and metric, and the proteins that are read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from protgraph.data.datasets import Dataset, Example, Target, linked_groups
from protgraph.errors import DatasetError
from protgraph.labels import load_dataset, train_on_other
from protgraph.registry import datasets, metrics
from protgraph.task import Metric

__all__ = ["SPLITS", "TASKS", "ProbeSplits", "ProbeTask", "choose_examples", "missing_dataset", "open_task"]

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class ProbeTask:
    """Labels of a dataset that a head predicts from vectors.

    Parameters
    ----------
    name : str
        Name in tables.
    dataset, task : str
    metric : str
        Metric that chooses options on validation, and scores.
    train_on : tuple of str, optional
        Dataset and task of the training and validation proteins, for a dataset of test proteins alone; homologs of
        these are left out.
    factor : int
        Times the limit of proteins: a label of a whole protein is one row.
    """

    name: str
    dataset: str
    task: str
    metric: str
    train_on: tuple[str, str] | None = None
    factor: int = 1

    def find_metric(self) -> Metric:
        """Return the registered metric."""
        return metrics.get(self.metric)


_ALL = (
    ProbeTask("secondary_structure", "pdb_core", "secondary_structure", "accuracy"),
    ProbeTask("ligand_site", "ligand_site", "ligand_site", "auprc"),
    ProbeTask("dna_site", "dna_site", "dna_site", "auprc"),
    ProbeTask("sugar_site", "sugar_site", "sugar_site", "auprc"),
    ProbeTask("ppi_site", "ppi_site", "ppi_site", "auprc", train_on=("db55_interface", "ppi_site")),
    ProbeTask("paratope", "paratope", "paratope", "auprc"),
    ProbeTask("cryptic_pocket", "cryptic_pocket", "cryptic_pocket", "auroc"),
    ProbeTask("scop_fold", "scop_fold", "scop_fold", "accuracy", factor=10),
    ProbeTask("model_quality", "model_quality", "model_quality", "pearson_overall"),
    ProbeTask("b_factor", "pdb_core", "b_factor", "pearson"),
)
TASKS = {task.name: task for task in _ALL}
"""The ten tasks by name."""


@dataclass(frozen=True, eq=False)
class ProbeSplits:
    """Chosen examples of a task.

    Parameters
    ----------
    dataset : Dataset
        Dataset that reads them and has their labels.
    task : str
        Name of the labels in the dataset.
    target : Target
    examples : dict of str to list of Example
        Split ("train", "val", "test") to examples, in random order: the first ones are a sample.
    """

    dataset: Dataset
    task: str
    target: Target
    examples: dict[str, list[Example]]


def missing_dataset(probe: ProbeTask) -> str | None:
    """Return the name of the first dataset of a task that is not prepared; None if all are."""
    names = [probe.dataset, *(probe.train_on or ())[:1]]
    return next((name for name in names if not datasets.create(name).is_prepared), None)


def open_task(probe: ProbeTask, limits: dict[str, int], *, seed: int = 0) -> ProbeSplits:
    """Choose the proteins of a task from the published splits of its dataset.

    A dataset without training proteins is divided: two thirds of the clusters of ``val`` are trained on.

    Parameters
    ----------
    limits : dict of str to int
        Split to its largest number of proteins, before ``probe.factor``.
    seed : int
        Order of the proteins.

    Raises
    ------
    DatasetError
        A split has no proteins.
    """
    dataset = load_dataset(probe.dataset)
    if probe.train_on is not None:
        source, source_task = probe.train_on
        dataset = train_on_other(dataset, probe.task, load_dataset(source), source_task)
    examples = {split: dataset.examples(probe.task, split) for split in SPLITS}
    if not examples["train"] and examples["val"]:
        examples |= _divide(dataset, examples["val"], seed)
    for split, members in examples.items():
        if not members:
            raise DatasetError(f"dataset {probe.dataset!r}: no proteins of split {split!r} for task {probe.task!r}.")
    chosen = {}
    for split, members in examples.items():
        chosen[split] = choose_examples(dataset, members, probe.factor * limits[split], seed=seed)
    return ProbeSplits(dataset, probe.task, dataset.target(probe.task), chosen)


def choose_examples(dataset: Dataset, examples: Sequence[Example], limit: int, *, seed: int) -> list[Example]:
    """Return up to ``limit`` examples in random order: one of each cluster first, then a second one, and so on.

    A smaller limit gives the first ones of a larger one.
    """
    order = sorted(examples, key=lambda example: example.id)
    random.Random(seed).shuffle(order)
    clusters = linked_groups([dataset.links(example) for example in order])
    seen: Counter[int] = Counter()
    rounds = []
    for cluster in clusters:
        rounds.append(seen[cluster])
        seen[cluster] += 1
    numbers = sorted(range(len(order)), key=lambda i: rounds[i])
    return [order[i] for i in numbers[:limit]]


def _divide(dataset: Dataset, examples: Sequence[Example], seed: int) -> dict[str, list[Example]]:
    """Divide examples by cluster into two thirds "train" and one third "val"."""
    clusters = linked_groups([dataset.links(example) for example in examples])
    names = sorted(set(clusters))
    random.Random(seed).shuffle(names)
    held_out = set(names[: len(names) // 3])
    parts: dict[str, list[Example]] = {"train": [], "val": []}
    for example, cluster in zip(examples, clusters, strict=True):
        parts["val" if cluster in held_out else "train"].append(example)
    return parts
