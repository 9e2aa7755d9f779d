"""The line graph, whose nodes are edges: which edges come before which, and the angle between them."""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph import Edges

__all__ = ["angle", "kinds_of_turn"]


def kinds_of_turn(edges: Edges, vec: Tensor, bins: int) -> Tensor:
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
    bin_of = (angle(-vec.unsqueeze(1), before) * (bins / torch.pi)).long().clamp(max=bins - 1)
    each = there.flatten(1).index_select(0, middle).unsqueeze(2)  # (E, K, 1)
    return vec.new_zeros(*bin_of.shape, bins).scatter(2, bin_of.unsqueeze(2), each)


def angle(a: Tensor, b: Tensor) -> Tensor:
    """Angles between vectors, ``(…, 3)`` twice to ``(…)``, 0 … π; 0 where one is 0. No gradient."""
    a, b = a.detach(), b.detach()
    dot = (a * b).sum(-1)
    # |a × b|² = |a|² |b|² − (a·b)²: exact enough for bins, none of which ends near 0 or π
    cross = (a.square().sum(-1) * b.square().sum(-1) - dot.square()).clamp(min=0).sqrt()
    return torch.atan2(cross, dot)
