"""Labeled graphs of a dataset for a training loop of your own; see :meth:`protgraph.Dataset.graphs`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.graph_list import GraphDataset
from protgraph.data.datasets.labeled_graphs import LabeledGraphs
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import DatasetError, list_first
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels.loading import load_dataset, resolve_task
from protgraph.labels.preparation import Prepared, prepare
from protgraph.registry.component import ComponentSpec
from protgraph.wording import count_noun

__all__ = ["read_labeled_graphs"]


class _PreparedGraphs(LabeledGraphs):
    """Prepared graphs, read from disk when they are used."""

    def __init__(self, prepared: Prepared, plan: FeaturePlan, splits: Sequence[str], target: Target) -> None:
        self.target, self.failures = target, prepared.failures
        self._plan, self._folder = plan, prepared.folder
        stores = [(split, prepared.splits[split]) for split in splits]
        self._places = [(split, store, i) for split, store in stores for i in range(len(store))]

    def __len__(self) -> int:
        return len(self._places)

    def read_graph(self, i: int) -> ProteinGraph:
        split, store, number = self._places[i]
        graph = self._plan.featurize(store[number])
        graph.split = split
        return graph

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for worker processes; the temporary folder belongs to this process."""
        return vars(self) | {"_folder": None}


class _GivenGraphs(LabeledGraphs):
    """Graphs of a dataset of graphs, with their features as they are."""

    def __init__(self, source: GraphDataset, examples: Sequence[Example], target: Target) -> None:
        self.target, self.failures = target, ()
        self._source, self._examples = source, list(examples)

    def __len__(self) -> int:
        return len(self._examples)

    def read_graph(self, i: int) -> ProteinGraph:
        example = self._examples[i]
        given, y = self._source.labeled_graph(example)
        graph = copy(given)
        graph.name, graph.y, graph.y_level, graph.split = example.id, y, self.target.level, example.split
        return graph


def read_labeled_graphs(
    dataset: Dataset,
    task: str,
    split: str | None,
    *,
    features: Sequence[ComponentSpec | str | Mapping[str, Any]] | None,
    node_type: str,
    cache: str | Path | None,
    jobs: int,
) -> LabeledGraphs:
    """Return the labeled graphs of a split; the arguments are those of :meth:`protgraph.Dataset.graphs`."""
    dataset = load_dataset(dataset, task=task)
    resolved = resolve_task(task, dataset)
    splits = dataset.splits(task)
    if split is not None and split not in splits:
        raise DatasetError(f"dataset {dataset.name!r}: split {split!r}. Allowed for {task!r}: {', '.join(splits)}.")
    source = dataset.source
    if isinstance(source, GraphDataset) and features is None:
        return _GivenGraphs(source, dataset.examples(task, split), resolved.target)
    plan = FeaturePlan(("knn",) if features is None else features, node_type=node_type)
    is_test_set = "test" in splits and "train" not in splits
    prepared = prepare(dataset, resolved, plan, cache=cache, jobs=jobs, needs_train=not is_test_set)
    chosen = [name for name in splits if name in prepared.splits and split in (None, name)]
    if not chosen:
        raise DatasetError(
            f"dataset {dataset.name!r}, task {task!r}: no protein of split {split!r} could be used. The first: "
            f"{prepared.failures[0]}"
        )
    if prepared.failures:
        warnings.warn(f"dataset {dataset.name!r}: {_describe_failures(prepared)}", stacklevel=3)
    return _PreparedGraphs(prepared, plan, chosen, resolved.target)


def _describe_failures(prepared: Prepared) -> str:
    names = list_first([failure.protein for failure in prepared.failures], 10)
    number = count_noun(len(prepared.failures), "protein")
    return f"{number} could not be used: {names}. The attribute failures has the reasons."
