"""Nested selection of GIN and GraphSAGE on datasets of graphs, and its table beside the published scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from protgraph.bench.graph_candidates import METHODS, graph_candidates
from protgraph.bench.nested_folds import NestedFold, stratified_folds
from protgraph.bench.nested_selection import RUNS, NestedResult, NestedRun, select_and_assess
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.graph_dataset import GraphDataset
from protgraph.errors import DatasetError

__all__ = ["NestedScore", "assess_graph_model", "nested_table"]


@dataclass(frozen=True)
class NestedScore:
    """Result of one model on one dataset.

    Parameters
    ----------
    dataset, model : str
    result : NestedResult
    published : float, optional
        Accuracy of the method on the card of the dataset.
    """

    dataset: str
    model: str
    result: NestedResult
    published: float | None


def assess_graph_model(
    model: str,
    dataset: Dataset,
    task: str,
    *,
    folds: Sequence[NestedFold] | None = None,
    grid: str = "small",
    epochs: int | None = None,
    runs: int = RUNS,
    rows: str | Path | None = None,
    on_run: Callable[[NestedRun], None] | None = None,
) -> NestedScore:
    """Choose and test the candidates of a grid; see :func:`protgraph.bench.nested_selection.select_and_assess`.

    Parameters
    ----------
    model : {"gin", "sage"}
    dataset : Dataset
        Graphs with ``node_attributes``, e.g. ``tu_enzymes``.
    task : str
    folds : sequence of NestedFold, optional
        Default: ten stratified folds, seed 0.
    grid, epochs
        See :func:`protgraph.bench.graph_candidates.graph_candidates`.
    runs, rows, on_run
        See :func:`protgraph.bench.nested_selection.select_and_assess`.

    Raises
    ------
    DatasetError
        The graphs have no ``node_attributes``.
    """
    folds = stratified_folds(dataset, task) if folds is None else folds
    width, nodes = _node_attributes(dataset, task)
    candidates = graph_candidates(model, width, nodes_per_graph=nodes, grid=grid, epochs=epochs)
    result = select_and_assess(candidates, dataset, task, folds, runs=runs, rows=rows, on_run=on_run)
    published = [row for row in dataset.card.tasks[task].published if row.method == METHODS[model]]
    value = next((row.value for row in published if row.metric == "accuracy"), None)
    return NestedScore(dataset.name, model, result, value)


def _node_attributes(dataset: Dataset, task: str) -> tuple[int, float]:
    """Return the number of attributes, and the mean number of nodes of a graph."""
    source = dataset.source
    if not isinstance(source, GraphDataset):
        raise DatasetError(f"dataset {dataset.name!r} has files, no graphs. Allowed: e.g. tu_enzymes, tu_proteins.")
    graphs = [source.labeled_graph(example)[0] for example in dataset.examples(task)]
    if "node_attributes" not in graphs[0]:
        raise DatasetError(f"graphs of {dataset.name!r} have no node_attributes. Set graph.node_attributes of each.")
    return graphs[0].node_attributes.size(1), fmean(graph.num_nodes for graph in graphs)


def nested_table(scores: Sequence[NestedScore]) -> str:
    """Return a Markdown table: accuracy in percent, mean and standard deviation over folds, and the published one."""
    lines = [
        "| dataset | model | accuracy, % | published, % | folds | training runs |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for score in scores:
        published = "" if score.published is None else f"{100 * score.published:.1f}"
        counts = f"{len(score.result.folds)} | {len(score.result.runs)}"
        lines.append(f"| {score.dataset} | {METHODS[score.model]} | {score.result} | {published} | {counts} |")
    return "\n".join(lines)
