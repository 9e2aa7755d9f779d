"""Table of the predictions of all test folds, with fold and label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.target import Target
from protgraph.data.graph.node_level import residue_nodes
from protgraph.data.store.graph_store import GraphStore
from protgraph.structure.residues.residues import Residues
from protgraph.task.predictions import SplitPredictions
from protgraph.train.predict import PROTEIN, RESIDUE, prediction_values
from protgraph.train.prediction_table import Predictions
from protgraph.train.value_column import prediction_columns, target_names

__all__ = ["FoldTest", "tabulate_folds"]

FoldTest = tuple[SplitPredictions, GraphStore]
"""Predictions of a test fold, ``protein`` numbering the examples of the dataset, and its graphs."""


def tabulate_folds(dataset: Dataset, task: str, target: Target, tests: Sequence[FoldTest]) -> Predictions:
    """Return one row per residue or protein, in the order of folds and examples.

    Columns: identity as in :class:`Predictions`, ``fold`` from 1, the known label, and the prediction. Tables of pairs
    and edges have no rows.
    """
    names = target_names(target)
    labels = ("label",) if target.kind == "classification" else tuple(f"label_{name}" for name in names)
    if target.is_geometric:
        labels = ()
    identity = RESIDUE if target.level == "node" else PROTEIN
    rows: list[Any] = []
    if target.level in ("node", "graph"):
        examples = {example.id: (number, example) for number, example in enumerate(dataset.examples(task))}
        for fold, (test, store) in enumerate(tests, 1):
            for i, name in enumerate(store.names):
                number, example = examples[name]
                rows += _rows(fold, test, number, example, dataset.read(example), store[i], target)
    return Predictions((*identity, "fold", *labels, *prediction_columns(target)), rows, [], target)


def _rows(
    fold: int,
    test: SplitPredictions,
    number: int,
    example: Example,
    residues: Residues,
    graph: Any,
    target: Target,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one protein."""
    place = (test.protein == number).nonzero().flatten()
    place = place[residue_nodes(graph)] if target.level == "node" else place
    threshold = test.threshold if test.threshold is None or test.threshold.dim() == 1 else test.threshold[place]
    values = prediction_values(test.logits[place], target, threshold)
    labels = _labels(test.y[place], target)
    file = example.path.name if example.record is None else f"{example.path.name}#{example.record}"
    if target.level == "node":
        columns = (a.tolist() for a in (residues.chain, residues.res_id, residues.ins_code, residues.res_name))
        keys = [(file, *key) for key in zip(*columns, strict=True)]
    else:
        keys = [(file, example.id, " ".join(residues.chain_names), len(residues))]
    for key, label, value in zip(keys, labels, values, strict=True):
        yield (*key, fold, *label, *value)


def _labels(y: Any, target: Target) -> list[tuple[Any, ...]]:
    """Return the label of each row; empty where it is unknown."""
    if target.is_geometric:
        return [()] * len(y)
    if target.kind == "classification":
        names = target_names(target)
        return [(names[k] if k >= 0 else "",) for k in y.tolist()]
    as_number = int if target.kind == "multilabel" else float
    return [tuple("" if v != v else as_number(v) for v in row) for row in y.tolist()]
