"""Encoder of ProteinMPNN: ``proteinmpnn_encoder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.proteinmpnn.blocks import EdgeBlock, map_blocks, split_edges
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from protgraph import FieldSpec, GraphLayer

__all__ = ["NodeUpdate", "PairMLP", "ProteinMPNNEncoder"]
ENTRY_POINTS = {"protgraph.layers": {"proteinmpnn_encoder": "ProteinMPNNEncoder"}}


class PairMLP(nn.Module):
    """Message MLP ``m_ij = g(W₂ g(A h_i + B e_ij + C h_j + b₁) + b₂)`` with g the GELU (erf); W₁ = ``[A B C]``.

    Parameters
    ----------
    node : int, optional
        Width of h; None without h.
    edge : int
        Width of e.
    dim : int
        Width of m.
    """

    def __init__(self, node: int | None, edge: int, dim: int) -> None:
        super().__init__()
        self.edge = nn.Linear(edge, dim)
        self.target = None if node is None else nn.Linear(node, dim, bias=False)
        self.source = None if node is None else nn.Linear(node, dim, bias=False)
        self.middle = nn.Linear(dim, dim)

    def of_nodes(self, h: Tensor | None) -> tuple[Tensor, Tensor] | None:
        """Compute ``A h + b₁`` and ``C h``, ``(N, dim)`` each; None without h."""
        return None if self.source is None else (self.of_target(h), self.source(h))

    def of_target(self, h: Tensor) -> Tensor:
        """Compute ``A h + b₁``, ``(…, node)`` to ``(…, dim)``."""
        return linear(h, self.target.weight, self.edge.bias)

    def forward(self, e: Tensor, nodes: tuple[Tensor, Tensor] | None, block: EdgeBlock) -> Tensor:
        """Compute m ``(E', dim)`` of a block from e ``(E', D)`` and ``A h + b₁`` and ``C h`` of nodes; in buffer 1."""
        w = self.edge.weight
        if nodes is None:
            z = torch.addmm(self.edge.bias, e, w.t(), out=block.buffer(0, len(w)))
        else:
            z = block.pair(*nodes)
            z = torch.addmm(z, e, w.t(), out=block.reuse(z))
        z, w = block.gelu(z), self.middle.weight
        return block.gelu(torch.addmm(self.middle.bias, z, w.t(), out=block.buffer(1, len(w))))

    def inner(self, z: Tensor) -> Tensor:
        """Compute ``g(W₂ g(z) + b₂)``, ``(…, dim)`` to the same shape."""
        return gelu(self.middle(gelu(z)))


class NodeUpdate(nn.Module):
    """Node update from a sum of messages, as in ProteinMPNN.

    ``h ← norm₁(h + W₃ Σ_j m_ij / scale)``, ``h ← norm₂(h + W_out g(W_in h))``, with g the exact GELU.

    ``Σ_j (W₃ m_ij + b₃) = W₃ (Σ_j m_ij) + K b₃``, so W₃ acts on nodes.

    Parameters
    ----------
    dim : int
        Width of h and m; the hidden layer is four times as wide.
    scale : float
        Constant divisor of the sums, independent of the number of neighbors.
    dropout : float
        Dropout probability of both updates.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement, algorithms 2 and 3.
    """

    def __init__(self, dim: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.scale = scale
        self.out = nn.Linear(dim, dim)
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.feed_forward = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor | None, total: Tensor, count: Tensor) -> Tensor:
        """Compute the new h.

        Parameters
        ----------
        h : Tensor or None
            ``(…, dim)``; None counts as 0.
        total : Tensor
            ``(…, dim)`` sums of messages.
        count : Tensor
            ``(…, 1)``, the number of messages in each sum.

        Returns
        -------
        Tensor
            ``(…, dim)``.
        """
        step = self.dropout((total @ self.out.weight.t() + count * self.out.bias) / self.scale)
        h = self.norms[0](step if h is None else h + step)
        return self.norms[1](h + self.dropout(self.feed_forward(h)))


class ProteinMPNNEncoder(GraphLayer):
    """Encoder layer of ProteinMPNN: update nodes from their edges, then edges from their nodes.

    ``h_i ← norm(h_i + 1/30 Σ_j MLP[h_i, e_ij, h_j])``, ``h_i ← norm(h_i + FFN(h_i))``,
    ``e_ij ← norm(e_ij + MLP[h_i, e_ij, h_j])``; three linear maps in each MLP, with GELU.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of h if none is read; else h keeps its width.
    scale : float
        Constant divisor of the sum of messages (not the number of neighbors).
    dropout : float
        Probability.
    unresolved : bool
        True, as in the program: residues without incoming edges send no messages to nodes, and their h is 0.
    updates_edges : bool
        False leaves the edges as they are, e.g. in the last layer of a model whose head reads nodes.

    Notes
    -----
    Reads: edges, edge_attr ``(E, D)`` scalars; optionally h ``(N, C)`` scalars, 0 if it is not wired.
    Writes: h ``(N, dim)`` and edge_attr ``(E, D)``, scalars.

    Linear maps of h are computed on nodes, and the last map of a message after the sum: a third of the products.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement, algorithm 2.
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "edge_attr")
    optional: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h", "edge_attr")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 128,
        scale: float = 30.0,
        dropout: float = 0.1,
        unresolved: bool = False,
        updates_edges: bool = True,
    ) -> None:
        super().__init__(fields)
        node, edge = self.scalar_width("h") if "h" in fields else None, self.scalar_width("edge_attr")
        dim = node or dim
        self.message = PairMLP(node, edge, dim)
        self.update = NodeUpdate(dim, scale, dropout)
        self.updates_edges = updates_edges
        if updates_edges:
            self.edge_message = PairMLP(dim, edge, dim)
            self.edge_out = nn.Linear(dim, edge)
            self.edge_norm = nn.LayerNorm(edge)
        self.dropout = nn.Dropout(dropout)
        self.unresolved = unresolved
        self.declare(h=f"{dim}x0e", edge_attr=f"{edge}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``, then ``edge_attr (E, C)`` from the new ``h`` of both ends if edges are updated."""
        edges, e, h = f["edges"], f["edge_attr"], f.get("h")
        blocks, nodes = split_edges(edges, e, max(e.size(1), self.update.out.in_features)), self.message.of_nodes(h)
        there = (edges.count > 0)[:, None].to(e.dtype) if self.unresolved else None  # (N, 1)

        def total(part: EdgeBlock) -> Tensor:
            m = self.message(e[part.rows], nodes, part)
            return part.sum(m if there is None else m * there[part.edges.index[0]])

        count = edges.count[:, None].to(e.dtype) if there is None else edges.sum(edges.source(there))
        h = self.update(h, map_blocks(blocks, total, edges.num_nodes), count)
        if there is not None:
            h = h * there
        if not self.updates_edges:
            return {"h": h, "edge_attr": e}
        pairs = self.edge_message.of_nodes(h)
        return {"h": h, "edge_attr": map_blocks(blocks, lambda part: self._edges(e[part.rows], pairs, part), len(e))}

    def _edges(self, e: Tensor, nodes: tuple[Tensor, Tensor] | None, part: EdgeBlock) -> Tensor:
        m, w = self.edge_message(e, nodes, part), self.edge_out.weight
        step = self.dropout(torch.addmm(self.edge_out.bias, m, w.t(), out=part.buffer(0, len(w))))
        return self.edge_norm(torch.add(e, step, out=part.reuse(step)))
