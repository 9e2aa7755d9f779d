"""The message passing of ProteinMPNN: ``proteinmpnn_encoder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.nn.update import Update

__all__ = ["EDGES", "Block", "PairMLP", "ProteinMPNNEncoder", "blocks"]

#: Edges that are worked on at once without gradients: 1536 × 128 float32 are 0.8 MB and stay in a core's cache.
EDGES = 1536


class Block:
    """Some nodes, each with its K neighbours; or all nodes, where they have not the same number.

    Parameters
    ----------
    edges : Edges
    nodes : slice
        Of N.
    """

    def __init__(self, edges: Edges, nodes: slice) -> None:
        k = edges.degree
        self.all, self.nodes, self.count = edges, nodes, nodes.stop - nodes.start
        self.degree = k
        self.edges = slice(None) if k is None else slice(nodes.start * k, nodes.stop * k)
        self.source = edges.index[0, self.edges]

    def add(self, z: Tensor, of_target: Tensor, of_source: Tensor) -> Tensor:
        """``z_ij + a_i + b_j`` into z ``(E', C)``, from ``(N, C)`` twice."""
        z = z.add_(of_source.index_select(0, self.source))
        if self.degree is None:
            return z.add_(self.all.target(of_target))
        z.view(self.count, self.degree, z.size(1)).add_(of_target[self.nodes].unsqueeze(1))
        return z

    def sum(self, m: Tensor) -> Tensor:
        """``(E', C)`` to ``(N', C)``."""
        return self.all.sum(m) if self.degree is None else m.view(self.count, self.degree, m.size(1)).sum(1)


def blocks(edges: Edges, device: torch.device) -> list[Block]:
    """Blocks of at most some 1500 edges on the CPU, without gradients; else one."""
    n, k = edges.num_nodes, edges.degree
    whole = k is None or torch.is_grad_enabled() or device.type != "cpu"
    step = n if whole else max(EDGES // max(k, 1), 1)
    return [Block(edges, slice(start, min(start + step, n))) for start in range(0, n, max(step, 1))]


class PairMLP(nn.Module):
    """``m_ij = g(W₂ g(A h_i + B e_ij + C h_j + b₁) + b₂)``; the reference's W₁ is ``[A B C]``, g the GELU by erf.

    Parameters
    ----------
    node : int, optional
        Width of h; None where there is none.
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
        """``A h`` and ``C h``, ``(N, dim)`` each."""
        return None if self.target is None or self.source is None else (self.target(h), self.source(h))

    def forward(self, e: Tensor, nodes: tuple[Tensor, Tensor] | None, block: Block) -> Tensor:
        z = self.edge(e)  # (E', dim)
        if nodes is not None:
            z = block.add(z, *nodes)
        return gelu(self.middle(gelu(z)))


class ProteinMPNNEncoder(GraphLayer):
    """Nodes hear from their edges, then edges from their nodes.

    ``h_i ← norm(h_i + 1/30 Σ_j MLP[h_i, e_ij, h_j])``, ``h_i ← norm(h_i + FFN(h_i))``,
    ``e_ij ← norm(e_ij + MLP[h_i, e_ij, h_j])``; three linear maps in each MLP, with GELU.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of h where none is read; else it keeps its own.
    scale : float
        What sums of messages are divided by: a constant, not the number of neighbours.
    dropout : float
        Probability.

    Notes
    -----
    Reads: edges, edge_attr ``(E, D)`` scalars; optionally h ``(N, C)`` scalars, 0 where it is not wired.
    Writes: h ``(N, dim)`` and edge_attr ``(E, D)``, scalars.

    The linear parts of h are worked out on nodes, the last map of a message after the sum: a third of the products.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement, algorithm 2.
    """

    reads: ClassVar[tuple[str, ...]] = ("edges", "edge_attr")
    optional: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h", "edge_attr")

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, dim: int = 128, scale: float = 30.0, dropout: float = 0.1
    ) -> None:
        super().__init__(fields)
        node, edge = self.scalar_width("h") if "h" in fields else None, self.scalar_width("edge_attr")
        dim = node or dim
        self.message = PairMLP(node, edge, dim)
        self.update = Update(dim, scale, dropout)
        self.edge_message = PairMLP(dim, edge, dim)
        self.edge_out = nn.Linear(dim, edge)
        self.edge_norm = nn.LayerNorm(edge)
        self.dropout = nn.Dropout(dropout)
        self.declare(h=f"{dim}x0e", edge_attr=f"{edge}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, e, h = f["edges"], f["edge_attr"], f.get("h")
        parts = blocks(edges, e.device)
        nodes = self.message.of_nodes(h)
        total = torch.cat([part.sum(self.message(e[part.edges], nodes, part)) for part in parts])
        h = self.update(h, total, edges.count[:, None].to(e.dtype))
        nodes = self.edge_message.of_nodes(h)
        return {"h": h, "edge_attr": torch.cat([self._edges(e[part.edges], nodes, part) for part in parts])}

    def _edges(self, e: Tensor, nodes: tuple[Tensor, Tensor] | None, part: Block) -> Tensor:
        return self.edge_norm(e + self.dropout(self.edge_out(self.edge_message(e, nodes, part))))
