"""The two objects that layers reduce through: :class:`Edges` over neighbours, :class:`Proteins` over a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from protgraph.data.segment import Backend, Segments
from protgraph.errors import FieldError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["Edges", "Proteins"]


class Edges:
    """Edges j → i of one graph or batch, sorted by target i, and the reductions over each node's neighbours.

    Parameters
    ----------
    edge_index : Tensor
        ``(2, E)`` int64, row 0 source j, row 1 target i, ascending in row 1.
    num_nodes : int
        N.
    degree : int, optional
        K, where every node has exactly K incoming edges: reductions become reshapes to ``(N, K, …)``.
    backend : {"auto", "native", "scatter"}
        How to reduce; see :class:`protgraph.data.segment.Segments`.

    Examples
    --------
    >>> edges = Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), num_nodes=3)
    >>> edges.mean(edges.source(torch.tensor([[1.0], [2.0], [4.0]]))).flatten().tolist()
    [3.0, 1.0, 0.0]
    """

    def __init__(
        self, edge_index: Tensor, num_nodes: int, *, degree: int | None = None, backend: Backend = "auto"
    ) -> None:
        self.index = edge_index
        self.num_nodes = num_nodes
        self.degree = degree
        self._targets = Segments(edge_index[1], num_nodes, length=degree, backend=backend)

    @classmethod
    def of(cls, graph: Data, *, backend: Backend = "auto") -> Edges:
        """The edges of a graph or batch (``edge_index`` and, where constant, ``degree``)."""
        if "edge_index" not in graph:
            raise FieldError("the graph has no edges: add an edge featurizer such as 'ca_knn'")
        degree = graph.degree if "degree" in graph else None
        if isinstance(degree, Tensor):  # PyG's own batching makes a tensor of each protein's
            degree = None
        return cls(graph.edge_index, graph.num_nodes, degree=degree, backend=backend)

    @property
    def num_edges(self) -> int:
        """E."""
        return self.index.size(1)

    @property
    def device(self) -> torch.device:
        """Where the edges lie."""
        return self.index.device

    @property
    def count(self) -> Tensor:
        """``(N,)`` int64, incoming edges of each node."""
        return self._targets.count

    @property
    def ptr(self) -> Tensor:
        """``(N + 1,)`` int64 row pointer over targets."""
        return self._targets.ptr

    def source(self, x: Tensor) -> Tensor:
        """Each edge's source value ``x[j]``, ``(N, …)`` to ``(E, …)``."""
        return x.index_select(0, self.index[0])

    def target(self, x: Tensor) -> Tensor:
        """Each edge's target value ``x[i]``, ``(N, …)`` to ``(E, …)``."""
        return self._targets.expand(x)

    def sum(self, m: Tensor) -> Tensor:
        """``Σ_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbours."""
        return self._targets.sum(m)

    def mean(self, m: Tensor) -> Tensor:
        """``mean_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbours."""
        return self._targets.mean(m)

    def max(self, m: Tensor) -> Tensor:
        """``max_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbours."""
        return self._targets.max(m)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over each node's incoming edges, ``(E, …)`` to ``(E, …)``."""
        return self._targets.softmax(logits)


class Proteins:
    """The partition of a batch's nodes into proteins, and the reductions over each.

    Parameters
    ----------
    batch : Tensor
        ``(N,)`` int64, protein of each node, ascending.
    sizes : sequence of int
        Nodes of each protein, on the host, so that no layer has to ask the device.
    """

    def __init__(self, batch: Tensor, sizes: tuple[int, ...], *, backend: Backend = "auto") -> None:
        self.batch, self.sizes = batch, tuple(sizes)
        if sum(self.sizes) != batch.numel():
            raise FieldError(f"proteins of sizes {self.sizes} do not make {batch.numel()} nodes")
        length = self.sizes[0] if self.sizes and len(set(self.sizes)) == 1 else None
        self._segments = Segments(batch, len(self.sizes), length=length, backend=backend)

    @classmethod
    def of(cls, graph: Data, *, backend: Backend = "auto") -> Proteins:
        """The proteins of a graph or batch."""
        if "batch" not in graph or graph.batch is None:
            some = next(v for k, v in graph.items() if graph.is_node_attr(k))
            return cls(torch.zeros(graph.num_nodes, dtype=torch.long, device=some.device), (graph.num_nodes,))
        sizes = graph.sizes if "sizes" in graph else graph.ptr.diff().tolist()  # PyG's own batching keeps no sizes
        return cls(graph.batch, sizes, backend=backend)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def ptr(self) -> Tensor:
        """``(B + 1,)`` int64: protein b holds the nodes ``ptr[b]:ptr[b + 1]``."""
        return self._segments.ptr

    def sum(self, x: Tensor) -> Tensor:
        """Sum over each protein, ``(N, …)`` to ``(B, …)``."""
        return self._segments.sum(x)

    def mean(self, x: Tensor) -> Tensor:
        """Mean over each protein, ``(N, …)`` to ``(B, …)``."""
        return self._segments.mean(x)

    def max(self, x: Tensor) -> Tensor:
        """Largest value of each protein, ``(N, …)`` to ``(B, …)``."""
        return self._segments.max(x)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over each protein's nodes, ``(N, …)`` to ``(N, …)``."""
        return self._segments.softmax(logits)

    def expand(self, g: Tensor) -> Tensor:
        """Each protein's value on its nodes, ``(B, …)`` to ``(N, …)``."""
        return self._segments.expand(g)

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """One view per protein of ``(N, …)``."""
        return x.split(self.sizes)

    def pad(self, x: Tensor, value: float = 0.0) -> tuple[Tensor, Tensor]:
        """``(N, …)`` to ``(B, L, …)`` with L the longest protein, and the ``(B, L)`` bool mask of real nodes."""
        b, longest = len(self.sizes), max(self.sizes, default=0)
        place = torch.arange(x.size(0), device=x.device) - self.ptr[:-1].index_select(0, self.batch)
        flat = self.batch * longest + place  # (N,)
        padded = x.new_full((b * longest, *x.shape[1:]), value).index_copy(0, flat, x)
        mask = torch.zeros(b * longest, dtype=torch.bool, device=x.device).index_fill_(0, flat, True)
        return padded.view(b, longest, *x.shape[1:]), mask.view(b, longest)

    def unpad(self, padded: Tensor) -> Tensor:
        """The inverse of :meth:`pad`, ``(B, L, …)`` to ``(N, …)``."""
        longest = padded.size(1)
        place = torch.arange(self.batch.numel(), device=padded.device) - self.ptr[:-1].index_select(0, self.batch)
        return padded.flatten(0, 1).index_select(0, self.batch * longest + place)
