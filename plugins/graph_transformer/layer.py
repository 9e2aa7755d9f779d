"""Attention along edges with edge features in keys and values: graph transformer (Shi et al. 2021)."""

# Not PyG's TransformerConv: 2.5–3.2 times the time (`python -m benchmarks layers`, PyG 2.8.1, 2026-11-23).

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.nn import AttentionMixin, EdgeWeights, GraphLayer, split_heads

__all__ = ["GraphTransformer"]
ENTRY_POINTS = {"protgraph.layers": {"graph_transformer": "GraphTransformer"}}


class GraphTransformer(GraphLayer, AttentionMixin):
    """Attention over the neighbors of each node, with edge features in keys and values (Shi et al. 2021).

    ``m_i = ‖_heads Σ_j softmax_j( q_i·(k_j + E e_ij) / √d ) (v_j + E e_ij)``, j over the neighbors of i.

    Then ``h'_i = m_i + R h_i``, or with ``beta`` ``h'_i = β_i R h_i + (1 - β_i) m_i`` with
    ``β_i = sigmoid(w · [m_i, R h_i, m_i - R h_i])``.

    Parameters
    ----------
    dim : int
        Width of the output; each head has dim / heads channels.
    heads : int
        Number of attention heads.
    beta : bool
        Gate between the node and its neighbors.
    dropout : float
        Dropout probability of attention weights.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Optional: ``edge_attr`` ``(E, F)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    Equal to PyG's TransformerConv(concat=True). No query, key or value is computed per edge: ``q_i · E e_ij`` is
    ``(Eᵀ q_i) · e_ij``, and ``Σ_j α_ij E e_ij`` is ``E Σ_j α_ij e_ij``. A node without neighbors gets ``R h_i``.

    References
    ----------
    Shi et al. 2021, arXiv:2009.03509, eqs. 1–6 (without the normalization and ReLU of eq. 6).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        heads: int = 4,
        beta: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width, self.shape = self.scalar_width("h"), (3, heads, split_heads(dim, heads))
        self.qkv = nn.Linear(width, 3 * dim)
        self.edge = nn.Linear(self.scalar_width("edge_attr"), dim, bias=False) if "edge_attr" in fields else None
        self.root = nn.Linear(width, dim)
        self.beta = nn.Linear(3 * dim, 1, bias=False) if beta else None
        self.dropout = nn.Dropout(dropout)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` by eqs. 3 and 4, scaled dot-product attention along edges."""
        edges, e = f["edges"], f.get("edge_attr")
        q, kv = self.qkv(f["h"]).unflatten(1, self.shape).split((1, 2), 1)  # (N, 1, H, D), (N, 2, H, D)
        q, p, weight = q.squeeze(1) / self.shape[2] ** 0.5, None, None
        if self.edge is not None:
            weight = self.edge.weight.view(*self.shape[1:], -1)  # (H, D, F)
            p = torch.einsum("nhd,hdf->nhf", q, weight)
        keep = self.dropout(q.new_ones(edges.num_edges, q.size(1))) if self.training and self.dropout.p else None
        m, summed, alpha = edges.dot_attention(q, kv, p=p, e=None if p is None else e, keep=keep)  # eqs. 3, 4
        self.record_attention(EdgeWeights(edges.index, alpha))
        if summed is not None:
            m = m + torch.einsum("nhf,hdf->nhd", summed, weight)
        m, root = m.flatten(1), self.root(f["h"])  # (N, dim)
        if self.beta is None:
            return {"h": m + root}
        beta = self.beta(torch.cat([m, root, m - root], 1)).sigmoid()  # eq. 5
        return {"h": beta * root + (1 - beta) * m}
