"""Ask a dataset for what it has for one task: examples with labels, or finished graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protgraph.data.datasets.dataset import Dataset, Example, checked_examples, checked_labels
from protgraph.data.datasets.graph_list import GraphDataset
from protgraph.data.datasets.labels import Labels
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.errors import DatasetError
from protgraph.featurize.plan import ALWAYS, FeaturePlan
from protgraph.structure.io.read_options import ReadOptions
from protgraph.task.task import Task

__all__ = ["TaskData", "read_task_data", "select_graphs"]

_ATTRIBUTES = ("degree", "name", "residue_ids", "report")


@dataclass(frozen=True, eq=False)
class TaskData:
    """Everything that a dataset states about one task, checked; the proteins themselves are not read yet."""

    name: str
    version: str
    read: ReadOptions  # of the dataset's files
    reads_files: bool  # False for a dataset that reads its proteins itself
    splits: tuple[str, ...]  # in the order of the dataset
    examples: Sequence[Example]
    labels: Sequence[Labels | None]  # one per example; None if the task derives them


def read_task_data(dataset: Dataset, task: str) -> TaskData:
    """Return the examples of a task with their labels, and what identifies the dataset."""
    examples = checked_examples(dataset, task)
    return TaskData(
        name=dataset.name,
        version=dataset.version,
        read=dataset.read_options,
        reads_files=dataset.reads_files,
        splits=tuple(dataset.splits(task)),
        examples=examples,
        labels=checked_labels(dataset, task, examples),
    )


def select_graphs(dataset: Dataset, task: Task, plan: FeaturePlan) -> dict[str, list[ProteinGraph]]:
    """Return the labeled graphs of each split of a dataset of graphs, with the fields that the model reads."""
    source = dataset.source
    assert isinstance(source, GraphDataset)
    if task.inputs.hidden or task.inputs.noise:
        raise DatasetError(
            f"task {task.name!r} hides information before featurizers run, which is not possible with graphs. "
            "Give files, a folder or a graph store."
        )
    splits: dict[str, list[ProteinGraph]] = {split: [] for split in dataset.splits(task.name)}
    for example in dataset.examples(task.name):
        labeled, y = source.labeled_graph(example)
        usable = plan.precomputed & set(labeled.keys())
        # The model names those of ALWAYS that it reads and the graph does not have.
        missing = plan.precomputed - usable - (set(ALWAYS) if usable - {"edge_index"} else set())
        if missing:
            raise DatasetError(
                f"graph {example.id!r} lacks the fields {', '.join(sorted(missing))}, which are features or inputs of "
                "the model. Make the graphs with its features: pg.build_graph(protein, pg.models.get(NAME).features), "
                "or give a model that reads the fields of your graphs: pg.ModelSpec(…, inputs={field: irreps})."
            )
        graph = ProteinGraph()
        set_attributes(graph, {key: labeled[key] for key in labeled.keys() if key in usable})  # noqa: SIM118
        for key in (*_ATTRIBUTES, *plan.attributes):
            if key in labeled:
                graph[key] = labeled[key]
        graph.name, graph.y, graph.y_level = example.id, y, task.stored.level
        graph.validate()
        splits[example.split].append(graph)
    return splits
