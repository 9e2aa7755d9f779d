"""Base class of prepared datasets of graphs without structures."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.graph_dataset import GraphDataset
from protgraph.data.datasets.labels import count_example
from protgraph.data.datasets.prepared_folder import EXAMPLES, MANIFEST, PreparedFolder, write_table
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.data.datasets.tu_archive import GraphTable
from protgraph.file_io import file_sha256
from protgraph.structure.residues.alphabet import UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

    from protgraph.data.graph.protein_graph import ProteinGraph

__all__ = ["PreparedGraphs", "stratified_splits"]

GRAPHS = "graphs.npz"
_HELD_OUT = 0.1  # of each class, for test and for validation each


class PreparedGraphs(GraphDataset, PreparedFolder):
    """Classification of graphs with node attributes; graphs are read from ``graphs.npz`` of the prepared folder.

    A subclass sets ``card_path`` and implements :meth:`convert_graphs`. Nodes have ``node_attributes`` and edges
    ``edge_index``; positions are NaN, and residue types unknown.
    """

    @abstractmethod
    def convert_graphs(self, source: SourceFolder) -> GraphTable:
        """Return the graphs of a source folder, in any layout that the dataset supports."""

    def write(self, source: SourceFolder, part: Path, progress: Callable[[int], None] | None = None) -> int:
        """Write graphs, examples and manifest."""
        table = self.convert_graphs(source)
        names = [f"{self.name}_{number + 1:04d}" for number in range(len(table.labels))]
        splits = stratified_splits(names, table.labels)
        np.savez_compressed(part / GRAPHS, **vars(table))
        rows = [(name, split, "") for name, split in zip(names, splits, strict=True)]
        write_table(part / EXAMPLES, [("id", "split", "cluster"), *rows])
        files = [(name, file_sha256(part / name)) for name in (EXAMPLES, GRAPHS)]
        write_table(part / MANIFEST, [("file", "sha256"), *files])
        if progress is not None:
            progress(len(names))
        return 0

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the graphs of a task, of all splits or of one."""
        self._task(task)
        path = self.folder / GRAPHS
        found = (Example(name, path, None, row["split"], record=name) for name, row in self.rows.items())
        return [example for example in found if split in (None, example.split)]

    def links(self, example: Example) -> frozenset[str]:
        """Return no links: sequences are not known."""
        return frozenset()

    def labeled_graph(self, example: Example) -> tuple[ProteinGraph, Tensor]:
        """Return the graph of an example, and its class ``(1,)``."""
        import torch  # here, so that lists of datasets need not import it

        from protgraph.data.graph.protein_graph import ProteinGraph

        i, table = self._number[example.id], self._table
        first_node, first_edge = self._first
        nodes = slice(first_node[i], first_node[i] + table.nodes[i])
        edges = slice(first_edge[i], first_edge[i] + table.edges[i])
        n = int(table.nodes[i])
        graph = ProteinGraph(
            pos=torch.full((n, 3), torch.nan),
            backbone=torch.full((n, 4, 3), torch.nan),
            backbone_mask=torch.zeros(n, 4, dtype=torch.bool),
            aatype=torch.full((n,), UNKNOWN),
            chain=torch.zeros(n, dtype=torch.long),
            masked=torch.zeros(n, dtype=torch.bool),
            res_id=torch.arange(n),
            seq_pos=torch.arange(n),
            node_attributes=torch.from_numpy(table.attributes[nodes].copy()),
            edge_index=torch.from_numpy(table.edge_index[:, edges].copy()),
        )
        graph.name = example.id
        return graph, torch.from_numpy(table.labels[i : i + 1].copy())

    def check(self, task: str) -> dict[str, SplitCount]:
        """Return the numbers of graphs, nodes and labels of each split."""
        target, table = self.target(task), self._table
        counts: dict[str, SplitCount] = {}
        for example in self.examples(task):
            i = self._number[example.id]
            own = count_example(table.labels[i : i + 1], target, int(table.nodes[i]))
            counts[example.split] = counts[example.split] + own if example.split in counts else own
        return {split: counts[split] for split in self.splits(task)}

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.rows)}

    @cached_property
    def _table(self) -> GraphTable:
        with np.load(self.folder / GRAPHS, allow_pickle=False) as file:
            return GraphTable(**{name: file[name] for name in file.files})

    @cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """First node and first edge of each graph."""
        table = self._table
        return np.cumsum(table.nodes) - table.nodes, np.cumsum(table.edges) - table.edges


def stratified_splits(names: list[str], labels: np.ndarray) -> list[str]:
    """Return splits with equal fractions of each class of ``labels (P,)``: a tenth is test, the second one validation.

    The order within a class is that of the SHA-256 of the names.

    Examples
    --------
    >>> stratified_splits([str(i) for i in range(10)], np.zeros(10)).count("train")
    8
    """
    order = sorted(range(len(names)), key=lambda i: hashlib.sha256(names[i].encode()).hexdigest())
    splits = np.full(len(names), "train", dtype="U5")
    for label in np.unique(labels):
        own = [i for i in order if labels[i] == label]
        size = round(_HELD_OUT * len(own))
        splits[own[:size]], splits[own[size : 2 * size]] = "test", "val"
    return splits.tolist()
