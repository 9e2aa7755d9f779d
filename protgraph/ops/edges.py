"""The two objects that layers reduce through: :class:`Edges` over neighbors, :class:`Proteins` over a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protgraph.errors import FieldError
from protgraph.ops.edge_order import check_edges
from protgraph.ops.ragged import PaddedLayout
from protgraph.ops.segment import Backend, Segments
from protgraph.ops.spmm import Dot, GatherSum, PairSum

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["Edges", "Proteins"]


class Edges:
    """Edges j → i of one graph or batch, sorted by target i, and what can be reduced over each node's neighbors.

    Gather, work on edges, reduce: ``edges.sum(message(edges.source(h)))``. Where the message is a product or a sum,
    :meth:`gather_sum`, :meth:`dot` and :meth:`pair_sum` do with fewer tensors of E rows, or none.

    Parameters
    ----------
    edge_index : Tensor
        ``(2, E)`` int64, row 0 source j, row 1 target i, ascending in row 1.
    num_nodes : int
        N.
    degree : int, optional
        K, where every node has exactly K incoming edges: reductions become reshapes to ``(N, K, …)``.
    num_sources : int, optional
        Rows of what edges come from, where that is another table than the N nodes that they go to.
    max_degree : int, optional
        Most edges that any node has coming in, where somebody counted already.
    backend : {"auto", "native", "scatter"}
        How to reduce; see :class:`protgraph.ops.segment.Segments`.

    Attributes
    ----------
    index : Tensor
        ``(2, E)`` int64, as given.
    sources, targets : Segments
        The edges that leave each node, and those that enter it.

    Examples
    --------
    >>> edges = Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), num_nodes=3)
    >>> h = torch.tensor([[1.0], [2.0], [4.0]])
    >>> edges.mean(edges.source(h)).flatten().tolist()
    [3.0, 1.0, 0.0]
    >>> edges.gather_sum(h).flatten().tolist()
    [6.0, 1.0, 0.0]
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        *,
        degree: int | None = None,
        num_sources: int | None = None,
        max_degree: int | None = None,
        backend: Backend = "auto",
    ) -> None:
        self.index = edge_index
        self.num_nodes, self.num_sources = num_nodes, num_nodes if num_sources is None else num_sources
        self.degree = degree
        self._max_degree = max_degree
        self._known: dict[str, tuple[Tensor, Any]] = {}
        self.targets = Segments(edge_index[1], num_nodes, length=degree, backend=backend)
        self.sources = Segments(edge_index[0], self.num_sources, is_sorted=False, backend=backend)

    @classmethod
    def of(cls, graph: Data, *, backend: Backend = "auto") -> Edges:
        """The edges of a graph or batch (``edge_index`` and, where there are any, ``degree`` and ``max_degree``)."""
        if "edge_index" not in graph:
            raise FieldError("the graph has no edges: add an edge featurizer such as 'knn'")
        if "sizes" not in graph:  # no batch of ours, whose edges were looked at
            check_edges(graph)
        given, most = graph.get("degree"), graph.get("max_degree")
        degree = None if isinstance(given, Tensor) else given  # PyG's own batching makes a tensor of each protein's
        return cls(graph.edge_index, graph.num_nodes, degree=degree, max_degree=most, backend=backend)

    @property
    def num_edges(self) -> int:
        """E."""
        return self.index.size(1)

    @property
    def max_degree(self) -> int:
        """Most edges that any node has coming in; a batch of proteins has counted them on the host."""
        if self._max_degree is None:
            self._max_degree = self.targets.longest if self.degree is None else self.degree
        return self._max_degree

    def incoming(self, m: Tensor) -> Tensor:
        """The edges of each node side by side, ``(E, C)`` to ``(N, max_degree, C)``; 0 where a node has fewer."""
        k = self.max_degree
        if self.degree is not None:
            return m.view(self.num_nodes, k, m.size(1))
        slot = torch.arange(k, device=m.device)
        place = (self.ptr[:-1, None] + slot).clamp(max=max(self.num_edges - 1, 0))  # (N, K)
        there = (slot < self.count[:, None]).to(m.dtype)
        return m.index_select(0, place.flatten()).view(self.num_nodes, k, m.size(1)) * there.unsqueeze(2)

    @property
    def device(self) -> torch.device:
        """Where the edges lie."""
        return self.index.device

    @property
    def count(self) -> Tensor:
        """``(N,)`` int64, incoming edges of each node."""
        return self.targets.count

    @property
    def ptr(self) -> Tensor:
        """``(N + 1,)`` int64 row pointer over targets."""
        return self.targets.ptr

    @cached_property
    def reversed(self) -> tuple[Edges, Tensor]:
        """The edges i → j of j → i, sorted by their new target, and ``(E,)`` int64: which old edge each is."""
        order = self.sources.order
        index = torch.stack([self.index[1 - row].index_select(0, order) for row in (0, 1)])
        return Edges(index, self.num_sources, num_sources=self.num_nodes), order

    def once(self, what: str, of: Tensor, make: Callable[[], Any]) -> Any:
        """What ``make`` finds out about these edges and a tensor of them, for all layers that ask in a row."""
        if what not in self._known or self._known[what][0] is not of:
            self._known[what] = of, make()
        return self._known[what][1]

    def source(self, x: Tensor) -> Tensor:
        """Each edge's source value ``x[j]``, ``(N, …)`` to ``(E, …)``."""
        return self.sources.expand(x)

    def target(self, x: Tensor) -> Tensor:
        """Each edge's target value ``x[i]``, ``(N, …)`` to ``(E, …)``."""
        return self.targets.expand(x)

    def sum(self, m: Tensor) -> Tensor:
        """``Σ_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.sum(m)

    def mean(self, m: Tensor) -> Tensor:
        """``mean_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.mean(m)

    def max(self, m: Tensor) -> Tensor:
        """``max_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.max(m)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over each node's incoming edges, ``(E, …)`` to ``(E, …)``."""
        return self.targets.softmax(logits)

    def gather_sum(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """``Σ_j w_ij x_j``; equals ``sum(weight * source(x))`` without a value per edge and channel.

        Parameters
        ----------
        x : Tensor
            ``(N, C)``, or ``(N, H, C)`` for H heads; as many rows as there are sources.
        weight : Tensor, optional
            ``(E,)`` for ``(N, C)``; ``(E, H)`` for ``(N, H, C)``. None: ones.

        Returns
        -------
        Tensor
            ``(N, C)`` or ``(N, H, C)``; 0 without neighbors.
        """
        w = None if weight is None else weight.to(x.dtype)
        if x.dim() == 3:
            return GatherSum.apply(self, x, w)
        return GatherSum.apply(self, x.unsqueeze(1), None if w is None else w.unsqueeze(1)).squeeze(1)

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """``<a_i, b_j>`` of each edge without a value per edge and channel: ``(N, …, C)`` twice to ``(E, …)``."""
        if a.dim() == 3:
            return Dot.apply(self, a, b)
        return Dot.apply(self, a.unsqueeze(1), b.unsqueeze(1)).squeeze(1)

    def pair_sum(self, a: Tensor, b: Tensor, e: Tensor | None = None) -> Tensor:
        """``a_i + b_j + e_ij`` in one new tensor: ``(N, …)`` twice and ``(E, …)`` to ``(E, …)``.

        The linear part of a message is cheap on nodes: ``W [x_i, x_j, e] = W₁ x_i + W₂ x_j + W₃ e``.
        """
        return PairSum.apply(self, a, b, e)


class Proteins:
    """The partition of a batch's nodes into proteins, and the reductions over each.

    Parameters
    ----------
    batch : Tensor
        ``(N,)`` int64, protein of each node, ascending.
    sizes : sequence of int
        Nodes of each protein, on the host, so that no layer has to ask the device.
    padded : bool, optional
        Whether :attr:`layout` pads proteins of about one length to one; None: on a GPU.
    chain, residue : Tensor, optional
        ``(N,)`` int64, number of each node's chain and residue in its protein, for :attr:`chains` and :attr:`residues`.

    Notes
    -----
    The *pairs* of a batch are all ordered pairs of each protein's nodes, row-major (i, then j), protein after protein:
    P = Σ_b L_b² of them.
    """

    def __init__(
        self,
        batch: Tensor,
        sizes: tuple[int, ...],
        *,
        backend: Backend = "auto",
        padded: bool | None = None,
        chain: Tensor | None = None,
        residue: Tensor | None = None,
    ) -> None:
        self.batch, self.sizes = batch, tuple(sizes)
        self._parts = {"chain": chain, "residue": residue}
        self.padded = batch.is_cuda if padded is None else padded
        self._layout: PaddedLayout | None = None
        if sum(self.sizes) != batch.numel():
            raise FieldError(f"proteins of sizes {self.sizes} do not make {batch.numel()} nodes")
        length = self.sizes[0] if self.sizes and len(set(self.sizes)) == 1 else None
        self._segments = Segments(batch, len(self.sizes), length=length, backend=backend)

    @classmethod
    def of(cls, graph: Data, *, backend: Backend = "auto") -> Proteins:
        """The proteins of a graph or batch."""
        if "batch" not in graph or graph.batch is None:
            some = next(v for k, v in graph.items() if graph.is_node_attr(k))
            batch, sizes = torch.zeros(graph.num_nodes, dtype=torch.long, device=some.device), (graph.num_nodes,)
        else:
            batch = graph.batch
            sizes = graph.sizes if "sizes" in graph else graph.ptr.diff().tolist()  # PyG's own batching keeps no sizes
        parts = {name: graph[name] for name in ("chain", "residue") if name in graph}
        return cls(batch, sizes, backend=backend, **parts)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def ptr(self) -> Tensor:
        """``(B + 1,)`` int64: protein b holds the nodes ``ptr[b]:ptr[b + 1]``."""
        return self._segments.ptr

    @cached_property
    def chains(self) -> Tensor:
        """``(N,)`` int64, chain of each node, counted over the batch: what ``batch`` is for proteins.

        Raises
        ------
        FieldError
            The graph does not say which chain its nodes are in.
        """
        return self._counted("chain")

    @cached_property
    def residues(self) -> Tensor:
        """``(N,)`` int64, residue of each node, counted over the batch: of atoms the one they are of.

        Raises
        ------
        FieldError
            The nodes are no atoms.
        """
        return self._counted("residue")

    def _counted(self, part: str) -> Tensor:
        """Numbers that begin anew in each protein, as numbers that go on."""
        number = self._parts[part]
        if number is None:
            raise FieldError(f"these proteins have no field {part!r}; Proteins.of(graph) takes it where it is there")
        count = self._segments.max(number) + 1  # (B,)
        return number + (count.cumsum(0) - count).index_select(0, self.batch)

    @property
    def num_pairs(self) -> int:
        """P."""
        return sum(size * size for size in self.sizes)

    @property
    def layout(self) -> PaddedLayout:
        """The batch as dense blocks; worked out once."""
        if self._layout is None:
            self._layout = PaddedLayout(self.sizes, self.sizes, self.batch.device, padded=self.padded)
        return self._layout

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """``(R,)`` int64, which of the pairs (i, j) is; i and j are nodes of one protein."""
        size = self._segments.count
        first = (size * size).cumsum(0) - size * size
        b = self.batch.index_select(0, i)
        start = self.ptr.index_select(0, b)
        return first.index_select(0, b) + (i - start) * size.index_select(0, b) + (j - start)

    def split_pairs(self, z: Tensor) -> list[Tensor]:
        """One view ``(L, L, …)`` per protein of ``(P, …)``."""
        parts = z.split([size * size for size in self.sizes])
        return [part.unflatten(0, (size, size)) for part, size in zip(parts, self.sizes, strict=True)]

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
