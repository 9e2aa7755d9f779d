"""Labeled graphs of a dataset, for a training loop of your own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.failure import Failure
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["LabeledGraphs"]


class LabeledGraphs(Sequence[ProteinGraph]):
    """Graphs with labels ``y``, ``y_level``, ``name`` and ``split``; see :meth:`protgraph.Dataset.graphs`.

    ``target``: target of the task; :func:`protgraph.build_model` takes it. ``failures``: proteins that could not be
    used.
    """

    target: Target
    failures: tuple[Failure, ...]

    @abstractmethod
    def read_graph(self, i: int) -> ProteinGraph:
        """Return a graph as a copy that may be changed."""

    @overload
    def __getitem__(self, i: int) -> ProteinGraph: ...
    @overload
    def __getitem__(self, i: slice) -> list[ProteinGraph]: ...
    def __getitem__(self, i: int | slice) -> ProteinGraph | list[ProteinGraph]:
        if isinstance(i, slice):
            return [self.read_graph(number) for number in range(*i.indices(len(self)))]
        return self.read_graph(i)

    def __iter__(self) -> Iterator[ProteinGraph]:
        return (self.read_graph(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"LabeledGraphs({count_noun(len(self), 'graph')} of task {self.target.name!r})"
