"""Edges of a graph or batch: their validation, and gather and reduction over the neighbors of each node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from protgraph.errors import FieldError
from protgraph.ops.computed_once import computed_once
from protgraph.ops.kernels.edge_attention import (
    AdditiveEdgeAttention,
    DotEdgeAttention,
    NeighborTile,
    additive_attention,
    dot_attention,
    neighbor_tiles,
    uses_tiles,
)
from protgraph.ops.segment import Segments
from protgraph.ops.spmm import Dot, GatherSum, PairSum

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["Edges", "check_edges", "common_degree", "count_nodes", "edge_ends"]


def common_degree(graph: Data) -> int | None:
    """Return the number of incoming edges of every node, from ``degree`` of a graph or batch; None if it is not known.

    PyG's batching makes a list or a tensor with one value per graph.
    """
    degree = graph.get("degree")
    if isinstance(degree, list):
        degree = degree[0] if len(set(degree)) == 1 else None
    return None if degree is None or isinstance(degree, Tensor) else int(degree)


def check_edges(graph: Data, edges: str = "edges") -> None:
    """Check shape, node indices and order of ``edge_index`` or of a named edge set, and that ``degree`` is correct.

    Raises :class:`FieldError` if a check fails. PyG's transforms, e.g. ``ToUndirected``, leave edges in another order.
    """
    if torch.compiler.is_compiling():  # values are not available during tracing
        return
    name = _index_name(edges)
    index = graph[name]
    if index.dim() != 2 or index.size(0) != 2 or index.dtype != torch.long:
        raise FieldError(f"{name} of {_name(graph)} is {tuple(index.shape)} {index.dtype}; it must be (2, E) int64")
    if index.numel() == 0:
        return
    num_sources, num_nodes = count_ends(graph, edges)
    degree = common_degree(graph) if edges == "edges" else None
    is_regular = degree is not None and _is_regular(index[1], num_nodes, degree)  # hence sorted, and targets are nodes
    _check_nodes(graph, name, index[0], num_sources)
    if is_regular:
        return
    _check_nodes(graph, name, index[1], num_nodes)
    if bool((index[1, 1:] < index[1, :-1]).any()):
        raise FieldError(
            f"{name} of {_name(graph)} is not sorted by target (row 1).\nSort it: graph = graph.sort(sort_by_row=False)"
        )
    if degree is not None:
        raise FieldError(
            f"degree of {_name(graph)} is {degree}, but not every node has {degree} incoming edges.\n"
            "If edges were added or removed, delete the attribute: del graph.degree"
        )


def _index_name(edges: str) -> str:
    """Return the name of the edge index of an edge set, as protgraph.data.graph.fields.edge_index_name."""
    return "edge_index" if edges == "edges" else f"{edges}_edge_index"


def edge_ends(graph: Data | Mapping[str, Any], edges: str) -> tuple[str, str]:
    """Return the node sets of sources and targets of the edges of a graph or batch; "nodes": the nodes of the graph.

    They are the attribute ``far_ends`` of the edge set ``far``, e.g. "points>residues"; without it, nodes of the graph.
    PyG's batching makes a list with one value per graph.
    """
    ends = graph.get(f"{edges}_ends") or "nodes>nodes"
    sources, _, targets = (ends[0] if isinstance(ends, list) else ends).partition(">")
    return sources, targets


def count_nodes(graph: Data, nodes: str) -> int:
    """Return the number of nodes of a graph or batch, or of one of its node sets."""
    return int(graph.num_nodes or 0) if nodes == "nodes" else len(graph[f"{nodes}_pos"])


def count_ends(graph: Data, edges: str) -> tuple[int, int]:
    """Return the number of nodes that can be sources and targets of the edges of a graph or batch."""
    sources, targets = edge_ends(graph, edges)
    return count_nodes(graph, sources), count_nodes(graph, targets)


def _check_nodes(graph: Data, name: str, nodes: Tensor, num_nodes: int) -> None:
    low, high = _extremes(nodes)
    if low < 0 or high >= num_nodes:
        node = low if low < 0 else high
        raise FieldError(f"{name} of {_name(graph)} contains node {node}; nodes are 0 to {num_nodes - 1}")


def _is_regular(targets: Tensor, num_nodes: int, degree: int) -> bool:
    """Return True if targets ``(E,)`` are each node ``degree`` times, in order."""
    if targets.numel() != num_nodes * degree:
        return False
    if targets.device.type == "cpu":
        return bool((targets.numpy().reshape(-1, degree) == np.arange(num_nodes)[:, None]).all())
    nodes = torch.arange(num_nodes, device=targets.device).unsqueeze(1)  # (N, 1)
    return torch.equal(targets.view(-1, degree), nodes.expand(-1, degree))


def _extremes(index: Tensor) -> tuple[int, int]:
    """Return the smallest and the largest value; NumPy takes half of the time of torch for 7,000 edges."""
    if index.device.type == "cpu":
        values = index.numpy()
        return int(values.min()), int(values.max())
    low, high = torch.aminmax(index)
    return int(low), int(high)


def _name(graph: Data) -> str:
    if "name" not in graph:
        return "a graph"
    return repr(graph.name) if isinstance(graph.name, str) else f"a batch of {', '.join(map(repr, graph.name))}"


class Edges:
    """Edges j → i of a graph or batch, sorted by target i.

    The general pattern is gather, compute per edge, reduce: ``edges.sum(message(edges.source(h)))``. For messages that
    are products or sums, :meth:`gather_sum`, :meth:`dot` and :meth:`pair_sum` need less memory. Attention to neighbors
    is :meth:`attend` for given logits, and :meth:`additive_attention` or :meth:`dot_attention` with fused logits.
    ``torch.compile`` traces plain formulas of all of them.

    Parameters
    ----------
    edge_index : Tensor
        ``(2, E)`` int64; row 0 source j, row 1 target i, ascending in row 1.
    num_nodes : int
        Number of target nodes, N.
    degree : int, optional
        Incoming edges per node, K, if all nodes have the same number; reductions become reshapes to ``(N, K, …)``.
    num_sources : int, optional
        Number of source nodes, if sources and targets are different tables (bipartite).
    max_degree : int, optional
        Largest number of incoming edges of a node, if it is already computed.

    Raises
    ------
    IndexRangeError
        If a source or target is not the number of a node.
    FieldError
        If the targets are not sorted, or do not have ``degree`` edges each.

    Attributes
    ----------
    index : Tensor
        ``edge_index``.
    sources, targets : Segments
        Edges grouped by source and by target.

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
    ) -> None:
        self.index = edge_index
        self.num_nodes, self.num_sources = num_nodes, num_nodes if num_sources is None else num_sources
        self.degree = degree
        self._max_degree = max_degree
        self._cache: dict[str, tuple[Tensor, Any]] = {}
        self.targets = Segments(edge_index[1], num_nodes, length=degree, number_name="target")
        self.sources = Segments(edge_index[0], self.num_sources, is_sorted=False, number_name="source")

    @classmethod
    def from_graph(cls, graph: Data, edges: str = "edges") -> Edges:
        """Create the edges of a graph or batch from ``edge_index`` and, if present, ``degree`` and ``max_degree``.

        ``edges``: name of the edge set; the edge index of "far" is ``far_edge_index``. Raises :class:`FieldError` if
        the graph has no edges, or they fail :func:`protgraph.ops.check_edges`.
        """
        name = _index_name(edges)
        if name not in graph:
            which = "" if edges == "edges" else f" {edges!r}"
            raise FieldError(f"the graph has no edges{which}. Add an edge featurizer such as 'knn'.")
        if "sizes" not in graph:  # batches of protgraph.data.collate are checked when collated
            check_edges(graph, edges)
        if edges != "edges":
            num_sources, num_nodes = count_ends(graph, edges)
            max_degree = graph.get(f"{edges}_max_degree")
            return cls(graph[name], num_nodes, num_sources=num_sources, max_degree=max_degree)
        degree, max_degree = common_degree(graph), graph.get("max_degree")
        return cls(graph.edge_index, graph.num_nodes, degree=degree, max_degree=max_degree)

    @property
    def num_edges(self) -> int:
        """Number of edges, E."""
        return self.index.size(1)

    @property
    def max_degree(self) -> int:
        """Largest number of incoming edges of a node; a collated batch counts it on the host."""
        if self._max_degree is None:
            self._max_degree = self.targets.longest if self.degree is None else self.degree
        return self._max_degree

    def incoming(self, m: Tensor) -> Tensor:
        """Pad the incoming edges of each node to ``max_degree``: ``(E, C)`` to ``(N, max_degree, C)``; padding is 0."""
        k = self.max_degree
        if self.degree is not None:
            return m.view(self.num_nodes, k, m.size(1))
        slot = torch.arange(k, device=m.device)
        place = (self.ptr[:-1, None] + slot).clamp(max=max(self.num_edges - 1, 0))  # (N, K)
        is_edge = (slot < self.count[:, None]).to(m.dtype)
        return m.index_select(0, place.flatten()).view(self.num_nodes, k, m.size(1)) * is_edge.unsqueeze(2)

    @property
    def device(self) -> torch.device:
        """Device of the edge index."""
        return self.index.device

    @property
    def count(self) -> Tensor:
        """``(N,)`` int64, number of incoming edges per node."""
        return self.targets.count

    @property
    def ptr(self) -> Tensor:
        """``(N + 1,)`` int64 row pointer over targets."""
        return self.targets.ptr

    @computed_once
    def reversed(self) -> tuple[Edges, Tensor]:
        """Reversed edges, sorted by their new target; and ``(E,)`` int64, the original edge of each."""
        order = self.sources.order
        index = torch.stack([self.index[1 - row].index_select(0, order) for row in (0, 1)])
        edges = Edges(index, self.num_sources, num_sources=self.num_nodes)
        edges.targets = Segments(index[1], self.num_sources, ptr=self.sources.ptr)
        return edges, order

    def cached(self, key: str, tensor: Tensor, compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, computed once per key while ``tensor``, of any shape, is the same object.

        Consecutive layers share what they derive from one edge tensor. Within a compiled function it is computed at
        each call.
        """
        if torch.compiler.is_compiling():
            return compute()
        if key not in self._cache or self._cache[key][0] is not tensor:
            self._cache[key] = tensor, compute()
        return self._cache[key][1]

    def source(self, x: Tensor) -> Tensor:
        """Gather source values ``x[j]``, ``(N, …)`` to ``(E, …)``."""
        return self.sources.expand(x)

    def target(self, x: Tensor) -> Tensor:
        """Gather target values ``x[i]``, ``(N, …)`` to ``(E, …)``."""
        return self.targets.expand(x)

    def sum(self, m: Tensor) -> Tensor:
        """Sum over neighbors, ``Σ_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.sum(m)

    def mean(self, m: Tensor) -> Tensor:
        """Average over neighbors, ``mean_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.mean(m)

    def max(self, m: Tensor) -> Tensor:
        """Take the maximum over neighbors, ``max_j m_ij``, ``(E, …)`` to ``(N, …)``; 0 without neighbors."""
        return self.targets.max(m)

    def softmax(self, logits: Tensor) -> Tensor:
        """Apply softmax over the incoming edges of each node, ``(E, …)`` to ``(E, …)``."""
        return self.targets.softmax(logits)

    def gather_sum(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Compute ``Σ_j w_ij x_j``, i.e. ``sum(weight * source(x))`` without a tensor of edges × channels.

        ``x``: ``(N, C)``, or ``(N, H, C)`` for H heads; one row per source. ``weight``: ``(E,)`` for ``(N, C)``; ``(E,
        H)`` for ``(N, H, C)``. None: ones. Returns ``(N, C)`` or ``(N, H, C)``; 0 without neighbors.
        """
        w = None if weight is None else weight.to(x.dtype)
        if torch.compiler.is_compiling():
            return self.sum(self.source(x) if w is None else w.unsqueeze(-1) * self.source(x))
        if x.dim() == 3:
            return GatherSum.run(self, x, w)
        return GatherSum.run(self, x.unsqueeze(1), None if w is None else w.unsqueeze(1)).squeeze(1)

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute ``<a_i, b_j>`` per edge, ``a`` and ``b (N, …, C)`` to ``(E, …)``, without edges × channels."""
        if torch.compiler.is_compiling():
            return (self.target(a) * self.source(b)).sum(-1)
        if a.dim() == 3:
            return Dot.run(self, a, b)
        return Dot.run(self, a.unsqueeze(1), b.unsqueeze(1)).squeeze(1)

    def pair_sum(self, a: Tensor, b: Tensor, e: Tensor | None = None) -> Tensor:
        """Compute ``a_i + b_j + e_ij``, ``a`` and ``b (N, …)`` and ``e (E, …)`` to ``(E, …)``, allocating one tensor.

        With it, linear maps of messages act on nodes instead of edges: ``W [x_i, x_j, e] = W₁ x_i + W₂ x_j + W₃ e``.
        """
        if torch.compiler.is_compiling():
            z = self.target(a) + self.source(b)
            return z if e is None else z + e
        return PairSum.run(self, a, b, e)

    def attend(self, x: Tensor, logits: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Compute ``Σ_j α_ij x_j`` with ``α = softmax_j(logits)`` over the neighbors of each node.

        ``x``: ``(N, H, C)``, one row per source. ``logits``: ``(E, H)``. ``keep``: ``(E, H)``, factors of α from
        dropout. Returns sums ``(N, H, C)``, 0 without neighbors; the log-sum-exp of the logits ``(N, H)``, -inf without
        neighbors; and α ``(E, H)``, before dropout.
        """
        alpha, total = self.softmax_total(logits)
        return self.gather_sum(x, alpha if keep is None else alpha * keep), total, alpha

    def softmax_total(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Compute :meth:`softmax` of ``(E, H)`` and the log-sum-exp ``(N, H)``, -inf without neighbors."""
        top = self.max(logits.detach())  # (N, H)
        weight = (logits - self.target(top)).exp()
        total = self.sum(weight).clamp(min=1)  # the largest weight is 1: only nodes without neighbors are clamped
        empty = (self.count == 0).unsqueeze(1)
        return weight / self.target(total), (top + total.log()).masked_fill(empty, -torch.inf)

    def additive_attention(
        self,
        x: Tensor,
        target: Tensor,
        att: Tensor,
        *,
        slope: float,
        e: Tensor | None = None,
        weight: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute :meth:`attend` for ``att · LeakyReLU(target_i + x_j + weight e_ij)``, without edges × channels.

        ``x``: ``(N, H, C)``, one row per source. ``target``: ``(N, H C)``, one row per target. ``att``: ``(H, C)``.
        ``slope``: negative slope of the LeakyReLU. ``e``, ``weight``: ``(E, F)`` features of edges and their ``(H C,
        F)`` map. ``keep``: ``(E, H)``, factors of α from dropout. Returns the values of :meth:`attend`; α has no
        gradient if a fused kernel computes it.
        """
        run = AdditiveEdgeAttention.run if uses_tiles(x) else additive_attention
        return run(self, x, target, att, e, weight, keep, slope)

    def dot_attention(
        self,
        q: Tensor,
        kv: Tensor,
        *,
        p: Tensor | None = None,
        e: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Compute attention with the logits ``q_i · k_j + p_i · e_ij`` to values and features without edges × channels.

        ``q``: ``(N, H, C)``, one row per target. ``kv``: ``(N, 2, H, C)``, keys and values, one row per source. ``p``,
        ``e``: ``(N, H, F)`` and ``(E, F)`` features of edges. ``keep``: ``(E, H)``, factors of α from dropout. Returns
        ``Σ_j α_ij v_j`` ``(N, H, C)``; ``Σ_j α_ij e_ij`` ``(N, H, F)`` if there are features; and α ``(E, H)`` before
        dropout, which has no gradient if a fused kernel computes it.
        """
        return (DotEdgeAttention.run if uses_tiles(q) else dot_attention)(self, q, kv, p, e, keep)

    def tiles(self, width: int) -> list[NeighborTile]:
        """Return the edges of CPU tensors in tiles that fit in the cache, for rows of ``width`` numbers."""
        return self.cached(f"tiles of {width}", self.index, lambda: neighbor_tiles(self, width))
