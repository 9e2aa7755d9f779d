"""State of a run of ``proteinmpnn_decoder``: messages computed once, and neighbors padded to K."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protgraph import Edges
from protgraph.nn import DecoderState

__all__ = ["DecoderCache", "padded_features", "padded_neighbors"]


@dataclass
class DecoderCache(DecoderState):
    """Cached parts of messages.

    Parameters
    ----------
    h : Tensor
        ``(N, C)``, encoding of each residue.
    edge : Tensor
        ``(N · K, D)``, encoding of each edge, padded to K neighbors.
    copies, num_nodes : int
    of_edge : list of Tensor
        Contribution of edges to messages, ``(N, K, C)`` per layer; empty without copies.
    neighbor : Tensor
        ``(N, K)`` int64.
    there : Tensor or None
        ``(N, K, 1)``, 0 for padding; None without padding.
    count : Tensor
        ``(N, 1)``, number of neighbors.
    undecoded : list of Tensor
        Contribution of a residue to messages before it is decoded, ``(N, C)`` per layer.
    of_source : list of Tensor
        Its current contribution, ``(copies · N, C)`` per layer; empty without copies.
    table : list of Tensor
        Contribution of each type, ``(types, C)`` per layer.
    resolved : Tensor or None
        ``(N, 1)``, 0 for residues whose h stays 0; None without such residues.
    """

    h: Tensor
    edge: Tensor
    copies: int
    num_nodes: int
    of_edge: list[Tensor]
    neighbor: Tensor
    there: Tensor | None
    count: Tensor
    undecoded: list[Tensor]
    of_source: list[Tensor]
    table: list[Tensor]
    resolved: Tensor | None = None

    def mask(self, h: Tensor, node: Tensor | None = None) -> Tensor:
        """Set h ``(N, C)``, or ``(R, C)`` of ``node``, to 0 for unresolved residues."""
        if self.resolved is None:
            return h
        return h * (self.resolved if node is None else self.resolved[node])


def padded_neighbors(edges: Edges) -> tuple[Tensor, Tensor | None]:
    """Return neighbors ``(N, K)``, padded with node 0, and a mask of neighbors ``(N, K)``, or None without padding."""
    if edges.degree is not None:
        return edges.index[0].view(edges.num_nodes, edges.degree), None
    count, widest = edges.count, edges.max_degree
    there = torch.arange(widest, device=count.device) < count[:, None]
    neighbor = torch.zeros(edges.num_nodes, widest, dtype=torch.long, device=count.device)
    return neighbor.masked_scatter(there, edges.index[0]), there


def padded_features(e: Tensor, there: Tensor | None) -> Tensor:
    """Pad ``e (E, D)`` with 0 to ``(N · K, D)``, given the mask ``there (N, K)`` of :func:`padded_neighbors`."""
    if there is None:
        return e
    return e.new_zeros(there.numel(), e.size(1)).masked_scatter(there.flatten()[:, None], e)
