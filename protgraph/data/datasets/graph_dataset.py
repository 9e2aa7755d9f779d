"""Base class of datasets of graphs that have their features and labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NoReturn

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.errors import DatasetError

if TYPE_CHECKING:
    from torch import Tensor

    from protgraph.data.graph.protein_graph import ProteinGraph

__all__ = ["GraphDataset"]


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
