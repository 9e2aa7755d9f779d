"""Prepared data from graphs that are given with their features and labels."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.graph_list import GraphDataset
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_writer import write_store
from protgraph.errors import DatasetError
from protgraph.featurize.plan import ALWAYS, FeaturePlan
from protgraph.task.task import Task

__all__ = ["graphs_by_split"]

_ATTRIBUTES = ("degree", "name", "residue_ids", "report")


def graphs_by_split(
    dataset: Dataset, task: Task, plan: FeaturePlan
) -> tuple[Mapping[str, GraphStore], tempfile.TemporaryDirectory[str]]:
    """Write the graphs of each split to a temporary folder."""
    source = dataset.source
    assert isinstance(source, GraphDataset)
    if task.inputs.hidden or task.inputs.noise:
        raise DatasetError(
            f"task {task.name!r} hides information before featurizers run, which is not possible with graphs. "
            "Give files, a folder or a graph store."
        )
    splits: dict[str, list[ProteinGraph]] = {split: [] for split in dataset.splits(task.name)}
    for example in dataset.examples(task.name):
        given, y = source.labeled_graph(example)
        kept = plan.precomputed & set(given.keys())
        # The model names those of ALWAYS that it reads and the graph does not have.
        missing = plan.precomputed - kept - (set(ALWAYS) if kept - {"edge_index"} else set())
        if missing:
            raise DatasetError(
                f"graph {example.id!r} lacks the fields {', '.join(sorted(missing))}, which are features or inputs of "
                "the model. Make the graphs with its features: pg.build_graph(protein, pg.models.get(NAME).features), "
                "or give a model that reads the fields of your graphs: pg.ModelSpec(…, inputs={field: irreps})."
            )
        graph = ProteinGraph()
        set_attributes(graph, {key: given[key] for key in given.keys() if key in kept})  # noqa: SIM118
        for key in _ATTRIBUTES:
            if key in given:
                graph[key] = given[key]
        graph.name, graph.y, graph.y_level = example.id, y, task.stored.level
        graph.validate()
        splits[example.split].append(graph)
    folder = tempfile.TemporaryDirectory(prefix="protgraph-")
    stores = {split: write_store(Path(folder.name) / split, graphs) for split, graphs in splits.items() if graphs}
    return stores, folder
