r"""Sums and dot products over neighbors without a tensor of edges × channels: the kernels of ``Edges``.

With :math:`y_i = \sum_j w_{ij} x_j`,

    ∂L/∂x_j = Σ_i w_ij ∂L/∂y_i     (the same sum over the reversed edges)
    ∂L/∂w_ij = <∂L/∂y_i, x_j>      (one dot product per edge)

so sums and dot products are each other's derivatives and can be differentiated to any order. There are no atomic
additions: results are reproducible on every device.
"""

# Not torch.sparse.mm: 2–4 times the time, no gradient with repeated edges. Not PyG's scatter: 3–4 times (PyG 2.8.1,
# torch 2.13, 2026-11-22).

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from protgraph.ops.kernels.autograd_function import AutogradFunction
from protgraph.ops.kernels.gpu_kernels import edge_dot, segment_sum, uses_kernels

if TYPE_CHECKING:
    from protgraph.ops.segment import Segments

__all__ = ["Adjacency", "Dot", "GatherSum", "PairSum", "weighted_sum"]

# Edges per block on CPU: the gathered rows, 2 × 2048 × 128 float32 = 2 MB, stay in cache.
_CHUNK = 2048


class Adjacency(Protocol):
    """Attributes of :class:`protgraph.ops.Edges` that the kernels use.

    ``index``: ``(2, E)`` int64, sources and targets, sorted by target. ``num_nodes``: N. ``degree``: number of incoming
    edges of every node, if all have equally many. ``sources``, ``targets``: reductions of edges by source and by
    target.
    """

    index: Tensor
    num_nodes: int
    degree: int | None
    sources: Segments
    targets: Segments

    def target(self, x: Tensor) -> Tensor:
        """Return the row of the target of each edge, ``(N, …)`` to ``(E, …)``."""

    @property
    def num_edges(self) -> int:
        """Number of edges, E."""

    @property
    def ptr(self) -> Tensor:
        """``(N + 1,)`` int64 row pointer over targets."""

    @property
    def reversed(self) -> tuple[Adjacency, Tensor]:
        """Reversed edges, and ``(E,)`` int64 the original edge of each."""


class GatherSum(AutogradFunction):
    """``Σ_j w_ij x_j``: sources ``(M, H, C)`` and weights ``(E, H)`` (None: ones) to targets ``(N, H, C)``."""

    @staticmethod
    def forward(edges: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
        """Compute ``(N, H, C)``, the sums of ``weight_ij x_j`` over neighbors j; ``x (M, H, C)``, ``weight (E, H)``."""
        return weighted_sum(edges, x, None if weight is None else weight.t())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the inputs for the backward pass, not the ``output`` ``(N, H, C)``."""
        ctx.edges = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        """Return the gradients of ``x``, ``(M, H, C)``, and of ``weight``, ``(E, H)``, from ``grad (N, H, C)``.

        They are a sum over reversed edges and a dot product per edge.
        """
        x, weight = ctx.saved_tensors
        dx = _reversed_sum(ctx.edges, grad, weight) if ctx.needs_input_grad[1] else None
        dw = Dot.run(ctx.edges, grad, x) if ctx.needs_input_grad[2] else None
        return None, dx, dw


class Dot(AutogradFunction):
    """``<a_i, b_j>`` for each edge: two tensors ``(N, H, C)`` to ``(E, H)``."""

    @staticmethod
    def forward(edges: Adjacency, a: Tensor, b: Tensor) -> Tensor:
        """Compute ``(E, H)``, the scalar products of ``a`` at targets and ``b`` at sources, in blocks of edges."""
        if uses_kernels(a):
            return edge_dot(a, b, edges.index)
        chunk = _CHUNK if a.device.type == "cpu" else max(edges.num_edges, 1)
        products = []
        for source, target in zip(edges.index[0].split(chunk), edges.index[1].split(chunk), strict=True):
            product = a.index_select(0, target) * b.index_select(0, source)
            products.append(product.sum(-1))
        return torch.cat(products)  # (E, H)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the inputs for the backward pass, not the ``output`` ``(E, H)``."""
        ctx.edges = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        """Return the gradients of ``a`` and ``b``, ``(N, H, C)`` each, sums over edges from ``grad (E, H)``."""
        a, b = ctx.saved_tensors
        da = GatherSum.run(ctx.edges, b, grad) if ctx.needs_input_grad[1] else None
        db = _reversed_sum(ctx.edges, a, grad) if ctx.needs_input_grad[2] else None
        return None, da, db


class PairSum(AutogradFunction):
    """``a_i + b_j + e_ij`` for each edge: two tensors ``(N, …)`` and ``(E, …)`` (None: zeros) to ``(E, …)``."""

    @staticmethod
    def forward(edges: Adjacency, a: Tensor, b: Tensor, e: Tensor | None) -> Tensor:
        """Compute ``(E, …)``, ``a`` at targets plus ``b`` at sources plus ``e``."""
        z = b.index_select(0, edges.index[0])  # (E, …)
        if edges.degree and z.numel():
            z.view(edges.num_nodes, edges.degree, *z.shape[1:]).add_(a.unsqueeze(1))
        else:
            z.add_(edges.target(a))
        return z if e is None else z.add_(e)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the edges for the backward pass; values, also the ``output`` ``(E, …)``, are not needed."""
        ctx.edges = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None, Tensor | None]:
        """Return the gradients of ``a`` and ``b``, sums over edges, ``(N, …)`` each, and of ``e``: ``grad (E, …)``."""
        da = ctx.edges.targets.sum(grad) if ctx.needs_input_grad[1] else None
        db = ctx.edges.sources.sum(grad) if ctx.needs_input_grad[2] else None
        return None, da, db, grad if ctx.needs_input_grad[3] else None


def weighted_sum(edges: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
    """Compute :class:`GatherSum` of ``x (M, H, C)``, ``(N, H, C)``, without a gradient.

    The weights of each head are in a row of ``weight (H, E)``.
    """
    n, heads, width = x.shape
    if edges.num_edges == 0 or x.numel() == 0:
        return x.new_zeros(edges.num_nodes, heads, width)
    if uses_kernels(x):
        return segment_sum(x, edges.index[0], edges.ptr, weight)
    if heads == 1 or weight is None:  # all channels share the bags of rows
        w = None if weight is None else weight.flatten()
        table = x.flatten(1).contiguous()
        summed = embedding_bag(edges.index[0], table, edges.ptr[:-1], mode="sum", per_sample_weights=w)
        return summed.view(-1, heads, width)
    # one bag per head and node; all heads in one table
    number = torch.int32 if heads * max(n, edges.num_edges) < 2**31 else torch.int64  # int32: 1.5 times as fast
    head = torch.arange(heads, device=x.device, dtype=number).unsqueeze(1)
    rows = (edges.index[0].to(number) + head * n).flatten()  # (H E,)
    starts = (edges.ptr[:-1].to(number) + head * edges.num_edges).flatten()  # (H N,)
    table = x.transpose(0, 1).reshape(heads * n, width)
    summed = embedding_bag(rows, table, starts, mode="sum", per_sample_weights=weight.flatten())  # (H N, C)
    return summed.view(heads, edges.num_nodes, width).transpose(0, 1)


def _reversed_sum(edges: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
    """Compute ``Σ_i w_ij x_i`` at each source j, targets ``(N, H, C)`` and weights ``(E, H)`` to ``(M, H, C)``."""
    reversed_edges, order = edges.reversed
    return GatherSum.run(reversed_edges, x, None if weight is None else weight.index_select(0, order))
