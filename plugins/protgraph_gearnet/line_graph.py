"""The line graph, whose nodes are edges: which edges come before which, and the angle between them."""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph import Edges

__all__ = ["angle", "paths"]


def paths(edges: Edges) -> Tensor:
    """k → j before j → i, for every two edges that meet in a node j; k = i is among them.

    Returns
    -------
    Tensor
        ``(2, P)`` int64: row 0 the edge k → j, row 1 the edge j → i, ascending in row 1.

    Examples
    --------
    >>> paths(Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), num_nodes=3)).tolist()
    [[2, 0, 1], [0, 2, 2]]
    """
    middle, each = edges.index[0], torch.arange(edges.num_edges, device=edges.device)
    if edges.degree is not None:
        slot = torch.arange(edges.degree, device=edges.device)
        return torch.stack([(middle[:, None] * edges.degree + slot).flatten(), each.repeat_interleave(edges.degree)])
    count = edges.count.index_select(0, middle)  # (E,)
    after = each.repeat_interleave(count, output_size=edges.num_paths)  # (P,)
    first = edges.ptr.index_select(0, middle) - (count.cumsum(0) - count)  # (E,) less the number of its first path
    return torch.stack([first.index_select(0, after) + torch.arange(len(after), device=edges.device), after])


def angle(a: Tensor, b: Tensor) -> Tensor:
    """Angles between rows, ``(P, 3)`` twice to ``(P,)``, 0 … π; 0 where one is 0. No gradient."""
    a, b = a.detach(), b.detach()
    return torch.atan2(torch.linalg.vector_norm(torch.linalg.cross(a, b), dim=1), (a * b).sum(1))
