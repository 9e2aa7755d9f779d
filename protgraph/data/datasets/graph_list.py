"""Graphs that have their features and labels as a dataset."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NoReturn, TypeGuard

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, count_example, sum_counts
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.splits import (
    FRACTIONS,
    SplitAssignment,
    SplitUnit,
    assign_random_splits,
    label_strata,
    order_splits,
    splits_from_table,
)
from protgraph.data.datasets.target import Target
from protgraph.data.graph.convert import from_pyg
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, LabelError

__all__ = ["GraphDataset", "GraphListDataset", "are_graphs"]

_WHERE = "list of graphs"


def are_graphs(dataset: object) -> TypeGuard[Sequence[Data]]:
    """Return True for a list of graphs, ours or PyG's."""
    if not isinstance(dataset, Sequence) or isinstance(dataset, str | GraphStore):
        return False
    return bool(dataset) and all(isinstance(graph, Data) for graph in dataset)


class GraphDataset(Dataset):
    """Dataset of graphs, whose features are used as they are; there are no files that a featurizer could read."""

    @abstractmethod
    def labeled_graph(self, example: Example) -> tuple[ProteinGraph, Tensor]:
        """Return the graph of an example, and its labels ``(M, …)`` in the form of the target."""

    def labels(self, task: str, example: Example) -> None:
        """Return None: the labels are in the graphs."""
        self._task(task)

    def read(self, example: Example) -> NoReturn:
        """Raise, because graphs have no residues."""
        raise DatasetError(f"graph {example.id!r} has no residues. Give files, a folder or a graph store.")


class GraphListDataset(GraphDataset):
    """Graphs with labels ``y`` as a dataset for one task; their features are used as they are.

    Parameters
    ----------
    graphs : sequence of ProteinGraph or Data
        Each with ``y``: one row per node, or one row per graph (``y_level`` "node" or "graph"; by default the number of
        rows decides). Integers are classes (−1: unknown); booleans and floats that are all 0 or 1 are binary labels;
        other floats are numbers (NaN: unknown). With an attribute ``split``, all of them have one. Those of PyG are
        converted by :func:`protgraph.from_pyg`.
    task : str
        Name of the task.
    target : Target, optional
        Target of the labels; inferred by default.
    fractions : mapping of str to float
        Fractions of the random split, if graphs have no ``split``. Graphs of equal sequence are in the same split.
    seed : int
        Seed of the random split.

    Raises
    ------
    LabelError
        Labels are missing, or differ in kind or width.
    DatasetError
        There are no graphs, or only some have a split.

    Examples
    --------
    >>> import torch
    >>> graphs = [ProteinGraph(pos=torch.zeros(2, 3), y=torch.tensor([i, 1 - i]), name=str(i)) for i in (0, 1)]
    >>> GraphListDataset(graphs, fractions={"train": 0.5, "val": 0.5}).target("y").kind
    'classification'
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        *,
        task: str = "y",
        target: Target | None = None,
        fractions: Mapping[str, float] = FRACTIONS,
        seed: int = 0,
    ) -> None:
        if not graphs:
            raise DatasetError("dataset: the list of graphs is empty. Give at least one graph per split.")
        self._graphs = _by_name(graphs)
        names = list(self._graphs)
        labels = [_labels(graph, name) for name, graph in self._graphs.items()]
        target = target or _infer_target(task, labels)
        self._labels = {name: _canonical(y, target, name) for name, (y, _) in zip(names, labels, strict=True)}
        self._sequences = {name: _sequence_digest(graph) for name, graph in self._graphs.items()}
        assignment = self._assign(target, fractions, seed)
        self.notes = assignment.notes
        self._examples = [Example(n, Path(_WHERE), None, s, n) for n, s in zip(names, assignment.splits, strict=True)]
        nodes = {name: graph.num_nodes for name, graph in self._graphs.items()}
        counts = sum_counts((e.split, count_example(self._labels[e.id], target, nodes[e.id])) for e in self._examples)
        counts = {split: counts[split] for split in order_splits(counts)}
        sizes = {split: SplitCount(count.proteins, count.residues) for split, count in counts.items()}
        cards = {task: TaskCard(target, "y of the graphs", "all graphs", counts)}
        self.card = DatasetCard("graphs", self._version(), "", "", _WHERE, assignment.rule, sizes, cards)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a split, or all."""
        self._task(task)
        return [example for example in self._examples if split in (None, example.split)]

    def links(self, example: Example) -> frozenset[str]:
        """Return the digest of the sequence."""
        return frozenset({self._sequences[example.id]} - {""})

    def labeled_graph(self, example: Example) -> tuple[ProteinGraph, Tensor]:
        """Return the graph of an example, and its labels ``(M, …)`` in the form of the target."""
        return self._graphs[example.id], torch.from_numpy(self._labels[example.id])

    def _assign(self, target: Target, fractions: Mapping[str, float], seed: int) -> SplitAssignment:
        strata = label_strata(np.concatenate(list(self._labels.values())), target)
        units, start = [], 0
        for name, y in self._labels.items():
            rows = np.arange(start, start := start + len(y))
            counts = () if strata is None else strata.of(rows)
            units.append(SplitUnit(name, frozenset({self._sequences[name]} - {""}), counts=counts))
        stated = [str(graph.get("split") or "") for graph in self._graphs.values()]
        if any(stated):
            if not all(stated):
                missing = list(self._graphs)[stated.index("")]
                raise DatasetError(
                    f"{_WHERE}: graph {missing!r} has no split, others have one. Set graph.split of all."
                )
            return splits_from_table(stated, units, _WHERE)
        return assign_random_splits(units, fractions=fractions, seed=seed, strata=strata)

    def _version(self) -> str:
        """Return 12 hexadecimal digits that depend on all tensors and splits."""
        digest = hashlib.sha256(repr([(e.id, e.split) for e in self._examples]).encode())
        for graph in self._graphs.values():
            for key in sorted(graph.keys()):
                value = graph[key]
                digest.update(key.encode())
                digest.update(value.detach().cpu().numpy().tobytes() if isinstance(value, Tensor) else b"")
        return digest.hexdigest()[:12]


def _by_name(graphs: Sequence[Data]) -> dict[str, ProteinGraph]:
    """Return our graphs by their names."""
    converted = [graph if isinstance(graph, ProteinGraph) else from_pyg(graph) for graph in graphs]
    names = [str(graph.get("name") or f"graph {number}") for number, graph in enumerate(converted)]
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise DatasetError(
            f"{_WHERE}: {names.count(repeated[0])} graphs have the name {repeated[0]!r}. Set graph.name."
        )
    return dict(zip(names, converted, strict=True))


def _labels(graph: ProteinGraph, name: str) -> tuple[np.ndarray, Literal["node", "graph"]]:
    """Return the labels with one row per node or one row, and their level."""
    y = graph.get("y")
    if not isinstance(y, Tensor):
        raise LabelError(f"graph {name!r} has no labels y. Set graph.y: a row per residue, or one row for the protein.")
    y = y.detach().cpu().reshape(1) if y.dim() == 0 else y.detach().cpu()
    inferred: Literal["node", "graph"] = "node" if len(y) == graph.num_nodes and len(y) > 1 else "graph"
    level: Literal["node", "graph"] = graph.get("y_level") or inferred
    rows = {"node": graph.num_nodes, "graph": 1}.get(level)
    if rows != len(y):
        raise LabelError(
            f"graph {name!r}: y has {len(y)} rows. Allowed: {graph.num_nodes} (per node) or 1 (per graph)."
        )
    return y.numpy(), level


def _infer_target(task: str, labels: Sequence[tuple[np.ndarray, Literal["node", "graph"]]]) -> Target:
    levels = {level for _, level in labels}
    integers = {y.dtype.kind in "iu" for y, _ in labels}
    if len(levels) > 1 or len(integers) > 1:
        raise LabelError(
            f"{_WHERE}: labels differ: {len(levels)} levels, {len(integers)} types. Give all as integers or as floats."
        )
    values = [y for y, _ in labels]
    if integers == {True}:
        size = max(2, 1 + max(int(y.max(initial=0)) for y in values))
        return Target(task, levels.pop(), "classification", size)
    known = np.concatenate([y.astype(np.float64).ravel() for y in values])
    kind: Literal["multilabel", "regression"]
    kind = "multilabel" if np.isin(known[~np.isnan(known)], (0, 1)).all() else "regression"
    return Target(task, levels.pop(), kind, 1 if values[0].ndim == 1 else values[0].shape[1])


def _canonical(y: np.ndarray, target: Target, name: str) -> np.ndarray:
    """Return int64 ``(R,)`` for classification, else float32 ``(R, C)``."""
    if target.kind == "classification":
        fits = y.ndim == 1 and y.dtype.kind in "iu" and y.max(initial=0) < target.size and y.min(initial=0) >= -1
        y = y.astype(np.int64)
    else:
        y = y.astype(np.float32)
        y = y[:, None] if y.ndim == 1 else y
        fits = y.shape[1:] == target.shape
    if not fits:
        raise LabelError(
            f"graph {name!r}: y does not fit the target {target.name!r}: {target.kind}, size {target.size}."
        )
    return y


def _sequence_digest(graph: ProteinGraph) -> str:
    types = graph.get("aatype")
    return hashlib.sha256(types.cpu().numpy().tobytes()).hexdigest() if isinstance(types, Tensor) else ""
