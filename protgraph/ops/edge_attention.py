r"""Attention of each node to its neighbors: fused kernels of ``Edges``, without tensors of edges × channels.

Both compute :math:`o_i = \sum_j \alpha_{ij} x_j` with :math:`\alpha_{ij} = \mathrm{softmax}_j(s_{ij})`. The forward
pass processes one tile of target nodes after another and keeps ``(E, H)`` coefficients. The backward pass computes the
rows of the tile again. On other devices than a CPU, under ``torch.compile`` and for second derivatives, the same is
computed with the general operations of :class:`protgraph.ops.Edges`.

Least work for E edges, H heads of C channels and F edge features, forward and backward: E (3 F + 6) H C multiply-adds
(additive) or E (6 C + 4 F) H (dot product), and 3 or 6 gathered or scattered rows of H C numbers per edge. The kernels
compute F H C more per edge, to repeat the logits instead of storing their terms, and multiply by block-diagonal
matrices, with H - 1 zeros for each number, because that is faster than products of single heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from protgraph.ops.neighbor_tiles import NeighborTile
from protgraph.ops.spmm import Adjacency, GatherSum, reversed_sum

__all__ = ["AdditiveEdgeAttention", "DotEdgeAttention", "NeighborReductions", "uses_tiles"]


class NeighborReductions(Adjacency, Protocol):
    """Methods of :class:`protgraph.ops.Edges` that the kernels use."""

    def tiles(self, width: int) -> list[NeighborTile]: ...
    def target(self, x: Tensor) -> Tensor: ...
    def sum(self, m: Tensor) -> Tensor: ...
    def dot(self, a: Tensor, b: Tensor) -> Tensor: ...
    def pair_sum(self, a: Tensor, b: Tensor, e: Tensor | None = None) -> Tensor: ...
    def softmax_total(self, logits: Tensor) -> tuple[Tensor, Tensor]: ...
    def attend(self, x: Tensor, logits: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]: ...


def uses_tiles(x: Tensor) -> bool:
    """Return whether the fused kernels apply: float32 or float64 on a CPU, and not while compiling."""
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and not torch.compiler.is_compiling()


class AdditiveEdgeAttention(torch.autograd.Function):
    """Attention with ``s_ij = a · LeakyReLU(t_i + x_j + W e_ij)`` per head (Brody et al. 2022, eq. 7)."""

    @staticmethod
    def forward(
        edges: NeighborReductions,
        x: Tensor,
        t: Tensor,
        att: Tensor,
        e: Tensor | None,
        weight: Tensor | None,
        keep: Tensor | None,
        slope: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute sums ``(N, H, C)``, log-sum-exp ``(N, H)`` and coefficients ``(E, H)``."""
        rows, score = x.flatten(1), _block_diagonal(att.unsqueeze(0))[0].t()  # (H C, H)
        tiles, logits = edges.tiles(rows.size(1)), x.new_empty(edges.num_edges, x.size(1))
        scratch = _scratch(rows, tiles)
        for tile in tiles:
            z = _activated(tile, rows, t, e, weight, slope, scratch)  # (n K, H C)
            tile.put(logits, torch.mm(z, score).view(-1, tile.slots, x.size(1)))
        alpha, total = edges.softmax_total(logits)
        return GatherSum.forward(edges, x, alpha if keep is None else alpha * keep), total, alpha

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.edges, ctx.slope = inputs[0], inputs[7]
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs[1:7], output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, alpha = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:6]
        if torch.is_grad_enabled():  # create_graph=True
            keep, slope = inputs[5], ctx.slope

            def plain(*given: Tensor | None) -> tuple[Tensor, Tensor]:
                return additive_attention(ctx.edges, *given, keep, slope)[:2]

            return None, *_differentiable(plain, inputs[:5], (grad, grad_total), needed), None, None
        return None, *_additive_backward(ctx.edges, *inputs, alpha, ctx.slope, grad, grad_total, needed), None, None


def _additive_backward(
    edges: NeighborReductions,
    x: Tensor,
    t: Tensor,
    att: Tensor,
    e: Tensor | None,
    weight: Tensor | None,
    keep: Tensor | None,
    alpha: Tensor,
    slope: float,
    grad: Tensor,
    grad_total: Tensor,
    needed: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    heads, rows = x.size(1), x.flatten(1)
    score, g = _block_diagonal(att.unsqueeze(0))[0], _block_diagonal(grad)  # (H, H C), (N, H, H C)
    dx, dt, dscore = torch.zeros_like(rows), torch.zeros_like(t), torch.zeros_like(score)
    de = None if e is None or not needed[3] else torch.empty_like(e)
    dweight = None if weight is None else torch.zeros_like(weight.t(), memory_format=torch.contiguous_format)
    tiles = edges.tiles(rows.size(1))
    scratch, products = _scratch(rows, tiles), torch.empty_like(alpha)
    for tile in tiles:
        source = tile.gather(rows, scratch).view(-1, tile.slots, rows.size(1))
        tile.put(products, torch.bmm(g[tile.nodes], source.mT).mT)
    weighted, ds = _softmax_backward(edges, alpha, keep, products, grad_total)
    dz_scratch = torch.empty_like(scratch)
    for tile in tiles:
        z = _activated(tile, rows, t, e, weight, slope, scratch)
        of_tile = tile.take_real(ds).flatten(0, 1)  # (n K, H)
        dscore.addmm_(of_tile.t(), z)
        dz = torch.mm(of_tile, score, out=dz_scratch[: len(z)])
        torch.ops.aten.leaky_relu_backward.grad_input(dz, z, slope, True, grad_input=dz)
        by_node = dz.view(-1, tile.slots, rows.size(1))
        torch.sum(by_node, 1, out=dt[tile.nodes])
        if dweight is not None:
            dweight.addmm_(tile.take(e).flatten(0, 1).t(), dz)
        if de is not None:
            tile.put(de, torch.mm(dz, weight).view(-1, tile.slots, e.size(1)))
        by_node.baddbmm_(tile.take_real(weighted), g[tile.nodes])
        dx.index_add_(0, tile.sources, dz)
    datt = _own_blocks(dscore.unsqueeze(0), heads)[0]
    return dx.view_as(x), dt, datt, de, None if dweight is None else dweight.t()


def additive_attention(
    edges: NeighborReductions,
    x: Tensor,
    t: Tensor,
    att: Tensor,
    e: Tensor | None,
    weight: Tensor | None,
    keep: Tensor | None,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the outputs of :class:`AdditiveEdgeAttention` with general operations."""
    z = edges.pair_sum(t, x.flatten(1), None if e is None else e @ weight.t())
    return edges.attend(x, (leaky_relu(z, slope).view(-1, *att.shape) * att).sum(-1), keep)


class DotEdgeAttention(torch.autograd.Function):
    """Attention with ``s_ij = q_i · k_j + p_i · e_ij`` per head, and sums of values and of edge features."""

    @staticmethod
    def forward(
        edges: NeighborReductions, q: Tensor, kv: Tensor, p: Tensor | None, e: Tensor | None, keep: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Compute ``Σ_j α_ij v_j`` ``(N, H, C)``, ``Σ_j α_ij e_ij`` ``(N, H, F)`` and α ``(E, H)``."""
        k = kv[:, 0].flatten(1)  # (N, H C)
        tiles, logits, query = edges.tiles(k.size(1)), q.new_empty(edges.num_edges, q.size(1)), _block_diagonal(q)
        scratch = _scratch(k, tiles)
        for tile in tiles:
            source = tile.gather(k, scratch).view(-1, tile.slots, k.size(1))
            part = torch.bmm(query[tile.nodes], source.mT)  # (n, H, K)
            tile.put(logits, (part if p is None else part.baddbmm_(p[tile.nodes], tile.take(e).mT)).mT)
        alpha, _ = edges.softmax_total(logits)
        weighted = alpha if keep is None else alpha * keep
        summed = None if p is None else torch.zeros_like(p)
        for tile in tiles if summed is not None else ():
            torch.bmm(tile.take_real(weighted).mT, tile.take(e), out=summed[tile.nodes])
        return GatherSum.forward(edges, kv[:, 1], weighted), summed, alpha

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        ctx.edges = inputs[0]
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs[1:], output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_summed: Tensor | None, _: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, alpha = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:5]
        if torch.is_grad_enabled():  # create_graph=True
            keep = inputs[4]

            def plain(*given: Tensor | None) -> tuple[Tensor | None, ...]:
                return dot_attention(ctx.edges, *given, keep)[:2]

            return None, *_differentiable(plain, inputs[:4], (grad, grad_summed), needed), None
        return None, *_dot_backward(ctx.edges, *inputs, alpha, grad, grad_summed, needed), None


def _dot_backward(
    edges: NeighborReductions,
    q: Tensor,
    kv: Tensor,
    p: Tensor | None,
    e: Tensor | None,
    keep: Tensor | None,
    alpha: Tensor,
    grad: Tensor,
    grad_summed: Tensor | None,
    needed: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    v, g = kv[:, 1].flatten(1), _block_diagonal(grad)  # (N, H C), (N, H, H C)
    dp, de = None if p is None else torch.zeros_like(p), None if e is None or not needed[3] else torch.empty_like(e)
    tiles, products = edges.tiles(v.size(1)), torch.empty_like(alpha)
    scratch = _scratch(v, tiles)
    for tile in tiles:
        source = tile.gather(v, scratch).view(-1, tile.slots, v.size(1))
        part = torch.bmm(g[tile.nodes], source.mT)  # (n, H, K)
        if e is not None:
            part.baddbmm_(grad_summed[tile.nodes], tile.take(e).mT)
        tile.put(products, part.mT)
    weighted, ds = _softmax_backward(edges, alpha, keep, products)
    for tile in tiles if dp is not None else ():
        of_tile = tile.take_real(ds)  # (n, K, H)
        torch.bmm(of_tile.mT, tile.take(e), out=dp[tile.nodes])
        if de is not None:
            part = torch.bmm(of_tile, p[tile.nodes])  # (n, K, F)
            tile.put(de, part.baddbmm_(tile.take_real(weighted), grad_summed[tile.nodes]))
    dkv = [reversed_sum(edges, x, w) for x, w in ((q, ds), (grad, weighted))]
    return GatherSum.forward(edges, kv[:, 0], ds), torch.stack(dkv, 1), dp, de


def dot_attention(
    edges: NeighborReductions, q: Tensor, kv: Tensor, p: Tensor | None, e: Tensor | None, keep: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Compute the outputs of :class:`DotEdgeAttention` with general operations."""
    k, v = kv.unbind(1)
    logits = edges.dot(q, k)  # (E, H)
    if p is not None:
        logits = logits + torch.einsum("ehf,ef->eh", edges.target(p), e)
    out, _, alpha = edges.attend(v, logits, keep)
    weighed = alpha if keep is None else alpha * keep
    return out, None if p is None else edges.sum(weighed.unsqueeze(2) * e.unsqueeze(1)), alpha


def _activated(
    tile: NeighborTile, rows: Tensor, t: Tensor, e: Tensor | None, weight: Tensor | None, slope: float, scratch: Tensor
) -> Tensor:
    """Compute ``LeakyReLU(t_i + x_j + W e_ij)`` of a tile in a part of ``scratch``, ``(n K, H C)``."""
    z = tile.gather(rows, scratch)
    if e is not None:
        z.addmm_(tile.take(e).flatten(0, 1), weight.t())
    z.view(-1, tile.slots, z.size(1)).add_(t[tile.nodes].unsqueeze(1))
    return leaky_relu(z, slope, inplace=True)


def _scratch(rows: Tensor, tiles: Sequence[NeighborTile]) -> Tensor:
    """Allocate memory for the rows of any of the tiles, once for all of them."""
    return rows.new_empty(max((len(tile.sources) for tile in tiles), default=0), rows.size(1))


def _softmax_backward(
    edges: NeighborReductions, alpha: Tensor, keep: Tensor | None, products: Tensor, grad_total: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return α with dropout, and the gradient of the logits from ``<grad_i, x_j>``, each ``(E, H)``."""
    weighted, da = (alpha, products) if keep is None else (alpha * keep, products * keep)
    inner = edges.sum(alpha * da)  # (N, H)
    return weighted, alpha * (da - edges.target(inner if grad_total is None else inner - grad_total))


def _block_diagonal(x: Tensor) -> Tensor:
    """Return ``(n, H, H C)`` with row h of x in block h and 0 elsewhere, from ``(n, H, C)``."""
    n, heads, width = x.shape
    out = x.new_zeros(n, heads, heads, width)
    out.diagonal(dim1=1, dim2=2).copy_(x.mT)
    return out.view(n, heads, -1)


def _own_blocks(x: Tensor, heads: int) -> Tensor:
    """Return block h of row h, ``(n, H, H C)`` to ``(n, H, C)``."""
    return x.unflatten(2, (heads, -1)).diagonal(dim1=1, dim2=2).mT


def _differentiable(
    plain: Any, inputs: Sequence[Tensor | None], grads: Sequence[Tensor | None], needed: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of the inputs, which have gradients themselves."""
    wanted = [x for x, need in zip(inputs, needed, strict=True) if need]
    pairs = [(y, g) for y, g in zip(plain(*inputs), grads, strict=True) if y is not None and g is not None]
    found = iter(torch.autograd.grad([y for y, _ in pairs], wanted, [g for _, g in pairs], create_graph=True))
    return [next(found) if need else None for need in needed]
