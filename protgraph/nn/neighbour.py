"""Neighbour sums, attention and scalar products that never hold a value per edge and channel; pair sums, which do.

Sums and scalar products are each other's derivatives: with :math:`y_i = \\sum_j w_{ij} x_j`,

    ∂L/∂x_j = Σ_i w_ij ∂L/∂y_i     (a neighbour sum over the reversed edges)
    ∂L/∂w_ij = <∂L/∂y_i, x_j>      (a neighbour dot)

so both differentiate to any order. Everything here is deterministic on every device (no atomic additions).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from protgraph.data.edges import Edges

__all__ = ["neighbour_attention", "neighbour_dot", "neighbour_sum", "pair_sum", "reverse"]

# Edges whose gathered rows are multiplied at once on CPU: 2 × 2048 × 128 float32 are 2 MB and stay in cache.
_CHUNK = 2048


def neighbour_sum(edges: Edges, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """``Σ_j w_ij x_j`` over each node's neighbours; 0 without neighbours.

    Equals ``edges.sum(weight * edges.source(x))``, without the ``(E, …)`` tensors.

    Parameters
    ----------
    edges : Edges
    x : Tensor
        ``(N, C)``, or ``(N, H, C)`` for H heads.
    weight : Tensor, optional
        ``(E,)`` for ``(N, C)``; ``(E, H)`` for ``(N, H, C)``. None: ones.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> edges = Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), num_nodes=3)
    >>> neighbour_sum(edges, torch.tensor([[1.0], [2.0], [4.0]])).flatten().tolist()
    [6.0, 1.0, 0.0]
    """
    if x.dim() == 3:
        return _Sum.apply(edges, x, None if weight is None else weight.to(x.dtype))
    w = None if weight is None else weight.to(x.dtype).unsqueeze(1)
    return _Sum.apply(edges, x.unsqueeze(1), w).squeeze(1)


def neighbour_dot(edges: Edges, a: Tensor, b: Tensor) -> Tensor:
    """``<a_i, b_j>`` of every edge j → i and head: ``(N, H, C)`` twice to ``(E, H)``."""
    return _Dot.apply(edges, a, b)


def neighbour_attention(
    edges: Edges, x: Tensor, logits: Tensor, own: Tensor | None = None, *, dropout: nn.Module | None = None
) -> Tensor:
    """``Σ_j softmax_j(s_ij) x_j`` over each node's neighbours, and over the node itself where its logit is given.

    Parameters
    ----------
    edges : Edges
    x : Tensor
        ``(N, H, C)``.
    logits : Tensor
        ``(E, H)``, s_ij.
    own : Tensor, optional
        ``(N, H)``, s_ii. None: a node without neighbours gets 0.
    dropout : Module, optional
        Applied to the coefficients.

    Returns
    -------
    Tensor
        ``(N, H, C)``.
    """
    drop = dropout or nn.Identity()
    top = edges.max(logits.detach())  # (N, H)
    if own is not None:
        s_ii = own.detach()
        top = torch.where(edges.count.unsqueeze(1) > 0, torch.maximum(top, s_ii), s_ii)
    weight = (logits - edges.target(top)).exp()  # (E, H)
    # The softmax is normalised on nodes, after the sum.
    total, out = edges.sum(weight), neighbour_sum(edges, x, drop(weight))
    if own is None:
        # The largest weight is 1, so only a node without neighbours has less.
        return out / total.clamp(min=1).unsqueeze(-1)
    own_weight = (own - top).exp()
    return (out + drop(own_weight).unsqueeze(-1) * x) / (total + own_weight).unsqueeze(-1)


def pair_sum(edges: Edges, a: Tensor, b: Tensor, e: Tensor | None = None) -> Tensor:
    """``a_i + b_j + e_ij`` of every edge j → i: ``(N, C)`` twice and ``(E, C)`` to a new ``(E, C)``.

    The linear part of a message is cheap on nodes: ``W [x_i, x_j, e] = W₁ x_i + W₂ x_j + W₃ e``.
    """
    return _Pair.apply(edges, a, b, e)


def reverse(edges: Edges) -> tuple[Edges, Tensor]:
    """The edges i → j of j → i, sorted by their new target, and ``(E,)`` int64: which old edge each is."""
    order = torch.argsort(edges.index[0].int(), stable=True)  # int32 keys: half the radix passes
    return Edges(edges.index.flip(0).index_select(1, order), edges.num_nodes), order


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Edges, x: Tensor, weight: Tensor | None) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(x, weight)
        return _bags(edges, x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        dx = _reversed_sum(ctx.edges, grad, weight) if ctx.needs_input_grad[1] else None
        dw = neighbour_dot(ctx.edges, grad, x) if ctx.needs_input_grad[2] else None
        return None, dx, dw


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Edges, a: Tensor, b: Tensor) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(a, b)
        chunk = _CHUNK if a.device.type == "cpu" else max(edges.num_edges, 1)
        pairs = zip(edges.index[0].split(chunk), edges.index[1].split(chunk), strict=True)
        return torch.cat([(a.index_select(0, i) * b.index_select(0, j)).sum(-1) for j, i in pairs])  # (E, H)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        da = neighbour_sum(ctx.edges, b, grad) if ctx.needs_input_grad[1] else None
        db = _reversed_sum(ctx.edges, a, grad) if ctx.needs_input_grad[2] else None
        return None, da, db


class _Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Edges, a: Tensor, b: Tensor, e: Tensor | None) -> Tensor:
        ctx.edges = edges
        z = b.index_select(0, edges.index[0])  # (E, C)
        if edges.degree and z.numel():
            z.view(edges.num_nodes, edges.degree, -1).add_(a.unsqueeze(1))
        else:
            z.add_(edges.target(a))
        return z if e is None else z.add_(e)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None, Tensor | None]:
        da = ctx.edges.sum(grad) if ctx.needs_input_grad[1] else None
        db = _SourceSum.apply(ctx.edges, grad) if ctx.needs_input_grad[2] else None
        return None, da, db, grad if ctx.needs_input_grad[3] else None


class _SourceSum(torch.autograd.Function):
    """``Σ_i m_ij`` over the edges that leave j, ``(E, C)`` to ``(N, C)``: the derivative of gathering sources."""

    @staticmethod
    def forward(ctx: Any, edges: Edges, m: Tensor) -> Tensor:
        ctx.edges = edges
        if m.numel() == 0:
            return m.new_zeros(edges.num_nodes, m.size(1))
        back, order = reverse(edges)
        return embedding_bag(order, m.contiguous(), back.ptr[:-1], mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.edges.source(grad)


def _reversed_sum(edges: Edges, x: Tensor, weight: Tensor | None) -> Tensor:
    back, order = reverse(edges)
    return neighbour_sum(back, x, None if weight is None else weight.index_select(0, order))


def _bags(edges: Edges, x: Tensor, weight: Tensor | None) -> Tensor:
    """One bag of rows per head and node, all heads in one table: ``(N, H, C)`` to ``(N, H, C)``."""
    n, heads, width = x.shape
    if edges.num_edges == 0 or x.numel() == 0:
        return torch.zeros_like(x)
    if heads == 1 or weight is None:  # the same edges for all channels
        w = None if weight is None else weight.flatten()
        return embedding_bag(edges.index[0], x.flatten(1), edges.ptr[:-1], mode="sum", per_sample_weights=w).view_as(x)
    head = torch.arange(heads, device=x.device).unsqueeze(1)
    rows = (edges.index[0] + head * n).flatten()  # (H E,)
    starts = (edges.ptr[:-1] + head * edges.num_edges).flatten()  # (H N,)
    table = x.transpose(0, 1).reshape(heads * n, width)
    summed = embedding_bag(rows, table, starts, mode="sum", per_sample_weights=weight.t().flatten())  # (H N, C)
    return summed.view(heads, n, width).transpose(0, 1)
