"""The line graph, whose nodes are edges: which edges come before which, and the angle between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from protgraph import Edges

__all__ = ["vector_angle", "angle_bins", "angle_bin_sum"]

# Numbers of edges before edges that are held at once on CPU: 4 MB float32 stay in cache.
_CHUNK = 2**20


def angle_bins(edges: Edges, vec: Tensor, bins: int) -> Tensor:
    """In which bin of 0 … π each edge k → j turns before j → i, for every edge j → i and every k; k = i is among them.

    Parameters
    ----------
    edges : Edges
    vec : Tensor
        ``(E, 3)``, pos[j] - pos[i].
    bins : int
        B.

    Returns
    -------
    Tensor
        ``(E, K, B)``, 1 at the bin of ∠(x_i - x_j, x_k - x_j): row e's column k is the k-th edge that comes in to the
        source of edge e; 0 where there are fewer than K = ``edges.max_degree``.
    """
    there = edges.incoming(vec.new_ones(edges.num_edges, 1))  # (N, K, 1)
    around = edges.incoming(vec)  # (N, K, 3)
    middle = edges.index[0]
    before = around.flatten(1).index_select(0, middle).unflatten(1, (edges.max_degree, 3))  # (E, K, 3)
    bin_of = (vector_angle(-vec.unsqueeze(1), before) * (bins / torch.pi)).long().clamp(max=bins - 1)
    each = there.flatten(1).index_select(0, middle).unsqueeze(2)  # (E, K, 1)
    return vec.new_zeros(*bin_of.shape, bins).scatter(2, bin_of.unsqueeze(2), each)


def angle_bin_sum(edges: Edges, x: Tensor, turns: Tensor, weight: Tensor) -> Tensor:
    """``Σ_b W_b Σ_k x_jk``, k → j those before j → i that turn by bin b: ``(E, C)`` to ``(E, dim)``.

    ``turns`` are as :func:`angle_bins` gives them, ``weight`` is ``(dim, B C)``. On a CPU no tensor of all pairs of
    edges has C channels. Differentiable to any order in x and weight.
    """
    around = edges.incoming(x)  # (N, K, C)
    if edges.device.type == "cpu":
        return _TurnSum.apply(around, turns, edges.index[0], weight)
    return _mixed(around, turns, edges.index[0]) @ weight.t()


def _mixed(around: Tensor, turns: Tensor, middle: Tensor) -> Tensor:
    """``(E, B C)``."""
    return (turns.mT @ around.index_select(0, middle)).flatten(1)


class _TurnSum(torch.autograd.Function):
    """A few edges at a time; what is gathered for them is gathered again backwards."""

    @staticmethod
    def forward(ctx: Any, around: Tensor, turns: Tensor, middle: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(around, turns, middle, weight)
        parts = [_mixed(around, t, j) @ weight.t() for t, j in _chunks(around, turns, middle)]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, Tensor]:
        around, turns, middle, weight = ctx.saved_tensors
        shape = turns.size(2), around.size(2)
        if torch.is_grad_enabled():  # asked for derivatives of derivatives
            of_pairs = turns @ (grad @ weight).unflatten(1, shape)  # (E, K, C)
            return (
                torch.zeros_like(around).index_add(0, middle, of_pairs),
                None,
                None,
                grad.t() @ _mixed(*ctx.saved_tensors[:3]),
            )
        d_around, d_weight = torch.zeros_like(around), torch.zeros_like(weight)
        flat = d_around.flatten(1)
        for t, j, g in _chunks(around, turns, middle, grad):
            d_weight.addmm_(g.t(), _mixed(around, t, j))
            flat.index_add_(0, j, (t @ (g @ weight).unflatten(1, shape)).flatten(1))
        return d_around, None, None, d_weight


def _chunks(around: Tensor, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    size = max(1, _CHUNK // max(1, around[0].numel()))
    return zip(*(x.split(size) for x in tensors), strict=True)


def vector_angle(a: Tensor, b: Tensor) -> Tensor:
    """Angles between vectors, ``(…, 3)`` twice to ``(…)``, 0 … π; 0 where one is 0. No gradient."""
    a, b = a.detach(), b.detach()
    dot = (a * b).sum(-1)
    # |a × b|² = |a|² |b|² − (a·b)²: exact enough for bins, none of which ends near 0 or π
    cross = (a.square().sum(-1) * b.square().sum(-1) - dot.square()).clamp(min=0).sqrt()
    return torch.atan2(cross, dot)
