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
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from protgraph.ops.kernels.autograd_function import AutogradFunction
from protgraph.ops.spmm import Adjacency, weighted_sum

__all__ = [
    "AdditiveEdgeAttention",
    "DotEdgeAttention",
    "NeighborReductions",
    "NeighborTile",
    "neighbor_tiles",
    "uses_tiles",
]


def _entries() -> int:
    """Return the numbers per tile of gathered rows: 2^18 per thread, 1 MiB as float32.

    Smaller tiles cost more in calls than they save in cache.
    """
    return 2**18 * torch.get_num_threads()


@dataclass(frozen=True, eq=False)
class NeighborTile:
    """Consecutive target nodes with their incoming edges, padded to the same number of slots.

    ``nodes``, ``edges``: n target nodes and their incoming edges. ``slots``: largest number of incoming edges of these
    nodes, K. ``sources``: ``(n K,)`` int64, source of each slot; 0 where padded. ``place``: ``(n K,)`` int64, edge of
    each slot; None: every node has K edges. ``mask``: ``(n, K)`` bool, False where padded; None like ``place``.
    """

    nodes: slice
    edges: slice
    slots: int
    sources: Tensor
    place: Tensor | None = None
    mask: Tensor | None = None

    def take(self, m: Tensor) -> Tensor:
        """Return rows of edges by slot, ``(E, C)`` to ``(n, K, C)``; padded slots have the row of another edge."""
        rows = m[self.edges] if self.place is None else m.index_select(0, self.place)
        return rows.view(-1, self.slots, m.size(1))

    def take_heads(self, m: Tensor) -> Tensor:
        """Return columns of edges by node, ``(H, E)`` to ``(n, H, K)``, 0 where padded."""
        rows = m[:, self.edges] if self.place is None else m.index_select(1, self.place)
        rows = rows.unflatten(1, (-1, self.slots)).transpose(0, 1)
        return rows if self.mask is None else rows * self.mask.unsqueeze(1)

    def softmax(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Compute softmax over the edges of each node, 0 where padded, from ``(n, H, K)``; and log-sum-exp ``(n, H)``.

        Without edges, the log-sum-exp is -inf.
        """
        if self.mask is not None:
            logits = logits.masked_fill(~self.mask.unsqueeze(1), -torch.inf)
        top = logits.amax(2, keepdim=True)
        if self.mask is not None:
            top = top.clamp(min=torch.finfo(top.dtype).min)  # without edges
        weight = (logits - top).exp_()
        total = weight.sum(2, keepdim=True)
        log_total = (top + total.log()).squeeze(2)
        return weight.div_(total.clamp_(min=1)), log_total  # the largest weight is 1, unless there are no edges

    def gather(self, x: Tensor, out: Tensor) -> Tensor:
        """Gather the rows of the sources, ``x (N, C)`` to ``(n K, C)``, in the first rows of ``out (≥ n K, C)``."""
        return torch.index_select(x, 0, self.sources, out=out[: len(self.sources)])

    def put(self, out: Tensor, m: Tensor) -> None:
        """Write slots ``m (n, K, C)`` to the rows of their edges in ``out (E, C)``."""
        out[self.edges] = m.flatten(0, 1) if self.mask is None else m[self.mask]

    def put_heads(self, out: Tensor, m: Tensor) -> None:
        """Write ``m (n, H, K)`` to the columns of their edges in ``out (H, E)``."""
        rows = m.transpose(0, 1).flatten(1)  # (H, n K)
        out[:, self.edges] = rows if self.mask is None else rows[:, self.mask.flatten()]


def neighbor_tiles(edges: Adjacency, width: int) -> list[NeighborTile]:
    """Divide the edges of CPU tensors into tiles of about 2^18 numbers per thread for ``width`` channels.

    Nodes without edges, if all nodes of their tile are, are in no tile.
    """
    degree = edges.degree or -(-edges.num_edges // max(edges.num_nodes, 1))  # mean, rounded up
    size = max(1, _entries() // max(1, width * degree))
    if edges.degree:
        starts = range(0, edges.num_nodes, size)
        return [_regular(edges, first, min(first + size, edges.num_nodes), edges.degree) for first in starts]
    ptr = edges.ptr.tolist()
    tiles = []
    for first in range(0, edges.num_nodes, size):
        last = min(first + size, edges.num_nodes)
        incoming = slice(ptr[first], ptr[last])
        if incoming.start < incoming.stop:
            tiles.append(_padded(edges, first, last, incoming))
    return tiles


def _regular(edges: Adjacency, first: int, last: int, degree: int) -> NeighborTile:
    incoming = slice(first * degree, last * degree)
    return NeighborTile(slice(first, last), incoming, degree, edges.index[0, incoming])


def _padded(edges: Adjacency, first: int, last: int, incoming: slice) -> NeighborTile:
    start = edges.ptr[first:last, None]  # (n, 1)
    stop = edges.ptr[first + 1 : last + 1, None]  # (n, 1)
    slots = int((stop - start).max())
    edge_rows = start + torch.arange(slots)
    mask = edge_rows < stop  # (n, K)
    edge_rows = edge_rows.clamp(max=incoming.stop - 1).flatten()
    sources = edges.index[0].index_select(0, edge_rows)
    sources = sources.masked_fill(~mask.flatten(), 0)
    return NeighborTile(slice(first, last), incoming, slots, sources, edge_rows, mask)


class NeighborReductions(Adjacency, Protocol):
    """Methods of :class:`protgraph.ops.Edges` that the kernels use."""

    def tiles(self, width: int) -> list[NeighborTile]:
        """See :meth:`protgraph.ops.Edges.tiles`."""

    def target(self, x: Tensor) -> Tensor:
        """See :meth:`protgraph.ops.Edges.target`."""

    def sum(self, m: Tensor) -> Tensor:
        """See :meth:`protgraph.ops.Edges.sum`."""

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """See :meth:`protgraph.ops.Edges.dot`."""

    def pair_sum(self, a: Tensor, b: Tensor, e: Tensor | None = None) -> Tensor:
        """See :meth:`protgraph.ops.Edges.pair_sum`."""

    def attend(self, x: Tensor, logits: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`protgraph.ops.Edges.attend`."""


def uses_tiles(x: Tensor) -> bool:
    """Return whether the fused kernels apply to x, any shape: float32 or float64 on a CPU, and not while compiling."""
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and not torch.compiler.is_compiling()


class AdditiveEdgeAttention(AutogradFunction):
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
        """Compute sums ``(N, H, C)``, log-sum-exp ``(N, H)`` and coefficients ``(E, H)``.

        Sources are ``x (N, H, C)`` and targets ``t (N, H C)``; ``att (H, C)`` is a. Features of edges are ``e (E, F)``,
        W is ``weight (H C, F)``. ``keep (E, H)`` has the factors of the coefficients from dropout.
        """
        rows = x.flatten(1)  # (N, H C)
        score = _block_diagonal(att.unsqueeze(0))[0].t()  # (H C, H)
        by_feature = None if weight is None else weight.t().contiguous()  # (F, H C)
        tiles = edges.tiles(rows.size(1))
        scratch = _scratch(rows, tiles)
        alpha = x.new_empty(x.size(1), edges.num_edges)  # (H, E): bags read it by head
        total = x.new_full((edges.num_nodes, x.size(1)), -torch.inf)
        for tile in tiles:
            z = tile.gather(rows, scratch)
            _activate(z, tile, t, e, by_feature, slope)  # (n K, H C)
            logits = torch.mm(z, score).view(-1, tile.slots, x.size(1)).mT  # (n, H, K)
            of_tile, total[tile.nodes] = tile.softmax(logits)
            tile.put_heads(alpha, of_tile)
        return weighted_sum(edges, x, _kept(alpha, keep)), total, alpha.t()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Save inputs and attention weights, the last ``output``, ``(E, H)``, for the backward pass."""
        ctx.edges, ctx.slope = inputs[0], inputs[7]
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs[1:7], output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients, of the shapes of the inputs, from ``grad (N, H, C)`` and ``grad_total (N, H)``.

        Uses the saved weights, and differentiable operations if a graph is created.
        """
        x, t, att, e, weight, keep, alpha = ctx.saved_tensors
        edges = ctx.edges
        slope = ctx.slope
        needed = ctx.needs_input_grad[1:6]
        if torch.is_grad_enabled():  # create_graph=True

            def plain(
                x: Tensor, t: Tensor, att: Tensor, e: Tensor | None, weight: Tensor | None
            ) -> tuple[Tensor, Tensor]:
                return additive_attention(edges, x, t, att, e, weight, keep, slope)[:2]

            differentiable = _differentiable(plain, (x, t, att, e, weight), (grad, grad_total), needed)
            return None, *differentiable, None, None
        gradients = _additive_backward(edges, x, t, att, e, weight, keep, alpha, slope, grad, grad_total, needed)
        return None, *gradients, None, None


class _AdditiveGradients(NamedTuple):
    """Gradients of the inputs of :class:`AdditiveEdgeAttention`; None where there is none."""

    x: Tensor
    t: Tensor
    att: Tensor
    e: Tensor | None
    weight: Tensor | None


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
) -> _AdditiveGradients:
    heads = x.size(1)
    rows = x.flatten(1)  # (N, H C)
    score = _block_diagonal(att.unsqueeze(0))[0]  # (H, H C)
    g = _block_diagonal(grad)  # (N, H, H C)
    by_feature = None if weight is None else weight.t().contiguous()  # (F, H C), faster in products than its transpose

    # gradients, which the tiles add to or write
    dx = torch.zeros_like(rows)
    dt = torch.zeros_like(t)
    dscore = torch.zeros_like(score)
    de = None if e is None or not needed[3] else torch.empty_like(e)
    dweight = None if by_feature is None else torch.zeros_like(by_feature)

    tiles = edges.tiles(rows.size(1))
    scratch = _scratch(rows, tiles)
    dz_scratch = _scratch(rows, tiles)
    for tile in tiles:
        # logits: gradients from the sum and from the softmax
        z = tile.gather(rows, scratch)
        products = torch.bmm(g[tile.nodes], z.view(-1, tile.slots, rows.size(1)).mT)  # (n, H, K)
        weighted, ds = _softmax_backward(tile, alpha, keep, products, grad_total)
        ds = ds.mT.reshape(-1, heads)  # (n K, H)

        # their terms, in place of z
        _activate(z, tile, t, e, by_feature, slope)
        dscore.addmm_(ds.t(), z)
        dz = torch.mm(ds, score, out=dz_scratch[: len(z)])
        torch.ops.aten.leaky_relu_backward.grad_input(dz, z, slope, True, grad_input=dz)
        by_node = dz.view(-1, tile.slots, rows.size(1))
        torch.sum(by_node, 1, out=dt[tile.nodes])
        if dweight is not None and e is not None:
            features = tile.take(e).flatten(0, 1)  # (n K, F)
            dweight.addmm_(features.t().contiguous(), dz)
        if de is not None and e is not None and weight is not None:
            de_of_tile = torch.mm(dz, weight)
            tile.put(de, de_of_tile.view(-1, tile.slots, e.size(1)))

        # sources: through the logits and as summands
        by_node.baddbmm_(weighted.mT, g[tile.nodes])
        dx.index_add_(0, tile.sources, dz)
    datt = _diagonal_blocks(dscore.unsqueeze(0), heads)[0]
    if dweight is not None:
        dweight = dweight.t()
    return _AdditiveGradients(dx.view_as(x), dt, datt, de, dweight)


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
    of_edges = None if e is None or weight is None else e @ weight.t()  # (E, H C)
    z = edges.pair_sum(t, x.flatten(1), of_edges)
    activated = leaky_relu(z, slope).view(-1, *att.shape)  # (E, H, C)
    logits = (activated * att).sum(-1)  # (E, H)
    return edges.attend(x, logits, keep)


class DotEdgeAttention(AutogradFunction):
    """Attention with ``s_ij = q_i · k_j + p_i · e_ij`` per head, and sums of values and of edge features."""

    @staticmethod
    def forward(
        edges: NeighborReductions, q: Tensor, kv: Tensor, p: Tensor | None, e: Tensor | None, keep: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Compute ``Σ_j α_ij v_j`` ``(N, H, C)``, ``Σ_j α_ij e_ij`` ``(N, H, F)`` and α ``(E, H)``.

        Queries are ``q (N, H, C)``, keys and values ``kv (N, 2, H, C)``. Features of edges are ``e (E, F)`` and their
        queries ``p (N, H, F)``. ``keep (E, H)`` has the factors of α from dropout.
        """
        k = kv[:, 0].flatten(1)  # (N, H C)
        query = _block_diagonal(q)  # (N, H, H C)
        tiles = edges.tiles(k.size(1))
        scratch = _scratch(k, tiles)
        alpha = q.new_empty(q.size(1), edges.num_edges)  # (H, E): bags read it by head
        summed = None if p is None else p.new_zeros(p.shape)  # contiguous, or bmm writes one node after another
        for tile in tiles:
            source = tile.gather(k, scratch).view(-1, tile.slots, k.size(1))
            logits = torch.bmm(query[tile.nodes], source.mT)  # (n, H, K)
            if p is not None and e is not None:
                logits.baddbmm_(p[tile.nodes], tile.take(e).mT)
            of_tile, _ = tile.softmax(logits)
            tile.put_heads(alpha, of_tile)
            if summed is not None and e is not None:
                of_tile = of_tile if keep is None else of_tile * tile.take(keep).mT
                torch.bmm(of_tile, tile.take(e), out=summed[tile.nodes])
        return weighted_sum(edges, kv[:, 1], _kept(alpha, keep)), summed, alpha.t()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        """Save inputs and attention weights, the last ``output``, ``(E, H)``, for the backward pass."""
        ctx.edges = inputs[0]
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs[1:], output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_summed: Tensor | None, _: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients, of the shapes of the inputs, from ``grad (N, H, C)`` and ``grad_summed (N, H, F)``.

        Uses the saved weights, and differentiable operations if a graph is created.
        """
        q, kv, p, e, keep, alpha = ctx.saved_tensors
        edges = ctx.edges
        needed = ctx.needs_input_grad[1:5]
        if torch.is_grad_enabled():  # create_graph=True

            def plain(q: Tensor, kv: Tensor, p: Tensor | None, e: Tensor | None) -> tuple[Tensor, Tensor | None]:
                return dot_attention(edges, q, kv, p, e, keep)[:2]

            differentiable = _differentiable(plain, (q, kv, p, e), (grad, grad_summed), needed)
            return None, *differentiable, None
        gradients = _dot_backward(edges, q, kv, p, e, keep, alpha, grad, grad_summed, needed)
        return None, *gradients, None


class _DotGradients(NamedTuple):
    """Gradients of the inputs of :class:`DotEdgeAttention`; None where there is none."""

    q: Tensor
    kv: Tensor
    p: Tensor | None
    e: Tensor | None


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
) -> _DotGradients:
    v = kv[:, 1].flatten(1)  # (N, H C)
    g = _block_diagonal(grad)  # (N, H, H C)
    dp: Tensor | None = None
    de: Tensor | None = None
    features = None if p is None or e is None or grad_summed is None else (p, e, grad_summed)
    if features is not None:
        dp = features[0].new_zeros(features[0].shape)
        de = torch.empty_like(features[1]) if needed[3] else None
    dlogits = alpha.new_empty(q.size(1), edges.num_edges)  # (H, E)
    tiles = edges.tiles(v.size(1))
    scratch = _scratch(v, tiles)
    for tile in tiles:
        source = tile.gather(v, scratch).view(-1, tile.slots, v.size(1))
        products = torch.bmm(g[tile.nodes], source.mT)  # (n, H, K)
        if features is not None:
            p, e, grad_summed = features
            products.baddbmm_(grad_summed[tile.nodes], tile.take(e).mT)
        weighted, ds = _softmax_backward(tile, alpha, keep, products)
        tile.put_heads(dlogits, ds)
        if features is not None and dp is not None:
            p, e, grad_summed = features
            torch.bmm(ds, tile.take(e), out=dp[tile.nodes])
            if de is not None:
                of_edges = torch.bmm(ds.mT, p[tile.nodes])  # (n, K, F)
                tile.put(de, of_edges.baddbmm_(weighted.mT, grad_summed[tile.nodes]))
    # keys and values: sums over the targets of each source
    back, order = edges.reversed
    weights = _kept(alpha.t(), keep)
    dk = weighted_sum(back, q, dlogits.index_select(1, order))
    dv = weighted_sum(back, grad, weights.index_select(1, order))
    dq = weighted_sum(edges, kv[:, 0], dlogits)
    return _DotGradients(dq, torch.stack([dk, dv], 1), dp, de)


def dot_attention(
    edges: NeighborReductions, q: Tensor, kv: Tensor, p: Tensor | None, e: Tensor | None, keep: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Compute the outputs of :class:`DotEdgeAttention` with general operations."""
    k, v = kv.unbind(1)
    logits = edges.dot(q, k)  # (E, H)
    if p is None or e is None:
        out, _, alpha = edges.attend(v, logits, keep)
        return out, None, alpha
    logits = logits + torch.einsum("ehf,ef->eh", edges.target(p), e)
    out, _, alpha = edges.attend(v, logits, keep)
    weighed = alpha if keep is None else alpha * keep
    return out, edges.sum(weighed.unsqueeze(2) * e.unsqueeze(1)), alpha


def _activate(
    z: Tensor, tile: NeighborTile, t: Tensor, e: Tensor | None, by_feature: Tensor | None, slope: float
) -> None:
    """Compute ``LeakyReLU(t_i + x_j + W e_ij)`` of a tile in place of ``x_j``, ``(n K, H C)``, from Wᵀ ``(F, H C)``."""
    if e is not None and by_feature is not None:
        z.addmm_(tile.take(e).flatten(0, 1), by_feature)
    z.view(-1, tile.slots, z.size(1)).add_(t[tile.nodes].unsqueeze(1))
    leaky_relu(z, slope, inplace=True)


def _scratch(rows: Tensor, tiles: Sequence[NeighborTile]) -> Tensor:
    """Allocate memory for the rows of any of the tiles, once for all of them."""
    longest = max((len(tile.sources) for tile in tiles), default=0)
    return rows.new_empty(longest, rows.size(1))


def _kept(alpha: Tensor, keep: Tensor | None) -> Tensor:
    """Apply dropout factors ``(E, H)`` to coefficients ``(H, E)``."""
    return alpha if keep is None else alpha * keep.t()


def _softmax_backward(
    tile: NeighborTile, alpha: Tensor, keep: Tensor | None, products: Tensor, grad_total: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return α with dropout, and the gradient of the logits from ``<grad_i, x_j>``, each ``(n, H, K)``."""
    a = tile.take_heads(alpha.t())  # 0 where padded
    weighted = a
    if keep is not None:
        factors = tile.take(keep).mT
        weighted = a * factors
        products = products * factors
    inner = (a * products).sum(2)  # (n, H)
    if grad_total is not None:
        inner -= grad_total[tile.nodes]
    return weighted, a * (products - inner.unsqueeze(2))


def _block_diagonal(x: Tensor) -> Tensor:
    """Return ``(n, H, H C)`` with row h of x in block h and 0 elsewhere, from ``(n, H, C)``."""
    n, heads, width = x.shape
    out = x.new_zeros(n, heads, heads, width)
    out.diagonal(dim1=1, dim2=2).copy_(x.mT)
    return out.view(n, heads, -1)


def _diagonal_blocks(x: Tensor, heads: int) -> Tensor:
    """Return block h of row h, ``(n, H, H C)`` to ``(n, H, C)``."""
    return x.unflatten(2, (heads, -1)).diagonal(dim1=1, dim2=2).mT


def _differentiable(
    plain: Any, inputs: Sequence[Tensor | None], grads: Sequence[Tensor | None], needed: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of the inputs, which have gradients themselves."""
    needed_inputs = [x for x, is_needed in zip(inputs, needed, strict=True) if is_needed and x is not None]
    outputs = []
    grads_of_outputs = []
    for output, grad in zip(plain(*inputs), grads, strict=True):
        if output is not None and grad is not None:
            outputs.append(output)
            grads_of_outputs.append(grad)
    gradients = iter(torch.autograd.grad(outputs, needed_inputs, grads_of_outputs, create_graph=True))
    return [next(gradients) if is_needed else None for is_needed in needed]
