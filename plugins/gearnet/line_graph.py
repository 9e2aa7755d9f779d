"""Line graph, whose nodes are edges: adjacent edges and the angles between them.

Not PyG's ``LineGraph``: it has no angles, loops over edges in Python, 10× the time of ``angle_bins``, and numbers edges
by source but keeps ``edge_attr`` in the order of the input (PyG 2.8.1, one thread, 2,048 nodes × 30 neighbors,
2026-11-22).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from protgraph import Edges

__all__ = ["vector_angle", "angle_bins", "angle_bin_sum"]

#: Elements of a block of pairs of edges on the CPU: 4 MB float32 fit the cache.
_CHUNK = 2**20


def angle_bins(edges: Edges, vec: Tensor, bins: int) -> Tensor:
    """Return the bin of the angle between j → i and each incoming edge k → j (k = i included), one-hot.

    Parameters
    ----------
    edges : Edges
    vec : Tensor
        ``(E, 3)``, pos[j] - pos[i].
    bins : int
        Number of bins B of 0 … π.

    Returns
    -------
    Tensor
        ``(E, K, B)``, 1 at the bin of ∠(x_i - x_j, x_k - x_j); column k of row e is the k-th incoming edge of the
        source of edge e; 0 for padding to K = ``edges.max_degree``.
    """
    valid = edges.incoming(vec.new_ones(edges.num_edges, 1))  # (N, K, 1)
    incoming = edges.incoming(vec)  # (N, K, 3)
    middle = edges.index[0]
    before = incoming.flatten(1).index_select(0, middle).unflatten(1, (edges.max_degree, 3))  # (E, K, 3)
    bin_of = (vector_angle(-vec.unsqueeze(1), before) * (bins / torch.pi)).long().clamp(max=bins - 1)
    one = valid.flatten(1).index_select(0, middle).unsqueeze(2)  # (E, K, 1)
    return vec.new_zeros(*bin_of.shape, bins).scatter(2, bin_of.unsqueeze(2), one)


def angle_bin_sum(edges: Edges, x: Tensor, angles: Tensor, weight: Tensor) -> Tensor:
    """Compute ``Σ_b W_b Σ_k x_jk`` over the edges k → j whose angle to j → i is in bin b: ``x (E, C)`` to ``(E, dim)``.

    ``angles (E, K, B)`` is the result of :func:`angle_bins`, ``weight`` is ``(dim, B C)``. On the CPU, no tensor with
    C channels of all pairs of edges is allocated. AutogradFunction to any order in x and weight.
    """
    incoming = edges.incoming(x)  # (N, K, C)
    if edges.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):  # the products of the backward pass need one type
            return _AngleBinSum.apply(incoming.to(weight.dtype), angles.to(weight.dtype), edges.index[0], weight)
    return _mixed(incoming, angles, edges.index[0]) @ weight.t()


def _mixed(incoming: Tensor, angles: Tensor, middle: Tensor) -> Tensor:
    """Return the sums of each bin, ``(E, B C)``."""
    return (angles.mT @ incoming.index_select(0, middle)).flatten(1)


class _AngleBinSum(torch.autograd.Function):
    """Blockwise sum; the backward pass gathers its inputs again."""

    @staticmethod
    def forward(ctx: Any, incoming: Tensor, angles: Tensor, middle: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(incoming, angles, middle, weight)
        parts = [_mixed(incoming, t, j) @ weight.t() for t, j in _chunks(incoming, angles, middle)]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, Tensor]:
        incoming, angles, middle, weight = ctx.saved_tensors
        shape = angles.size(2), incoming.size(2)
        if torch.is_grad_enabled():  # second derivatives
            of_pairs = angles @ (grad @ weight).unflatten(1, shape)  # (E, K, C)
            return (
                torch.zeros_like(incoming).index_add(0, middle, of_pairs),
                None,
                None,
                grad.t() @ _mixed(*ctx.saved_tensors[:3]),
            )
        d_incoming, d_weight = torch.zeros_like(incoming), torch.zeros_like(weight)
        flat = d_incoming.flatten(1)
        for t, j, g in _chunks(incoming, angles, middle, grad):
            d_weight.addmm_(g.t(), _mixed(incoming, t, j))
            flat.index_add_(0, j, (t @ (g @ weight).unflatten(1, shape)).flatten(1))
        return d_incoming, None, None, d_weight


def _chunks(incoming: Tensor, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    size = max(1, _CHUNK // max(1, incoming[0].numel()))
    return zip(*(x.split(size) for x in tensors), strict=True)


def vector_angle(a: Tensor, b: Tensor) -> Tensor:
    """Compute angles between vectors ``a`` and ``b (…, 3)``, 0 … π, shape ``(…)``; 0 for zero vectors. No gradient."""
    a, b = a.detach(), b.detach()
    dot = (a * b).sum(-1)
    # |a × b|² = |a|² |b|² − (a·b)²: exact enough for bins, none of which ends near 0 or π
    cross = (a.square().sum(-1) * b.square().sum(-1) - dot.square()).clamp(min=0).sqrt()
    return torch.atan2(cross, dot)
