"""Attention along edges: GAT (Veličković et al. 2018), GATv2 (Brody et al. 2022)."""

# Not PyG's GATv2Conv: 1.7–3.0 times the time (`python -m benchmarks layers`, PyG 2.8.1, 2026-11-23).

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from protgraph.data.graph import FieldSpec
from protgraph.errors import OptionError
from protgraph.nn import AttentionMixin, EdgeWeights, GraphLayer, split_heads
from protgraph.ops import Edges

__all__ = ["GAT"]
ENTRY_POINTS = {"protgraph.layers": {"gat": "GAT"}}


class GAT(GraphLayer, AttentionMixin):
    """Graph attention layer, version 1 (Veličković et al. 2018) or 2 (Brody et al. 2022).

    ``h'_i = ‖_heads Σ_{j ∈ N(i) ∪ {i}} α_ij W h_j + b`` with ``α_ij = softmax_j(s_ij)``:

    * ``version=1``: ``s_ij = LeakyReLU(a_dst · W h_i + a_src · W h_j + a_e · e_ij)``; all nodes rank h_j alike;
    * ``version=2``: ``s_ij = a · LeakyReLU(W' h_i + W h_j + W_e e_ij)``; the ranking depends on node i.

    Parameters
    ----------
    dim : int
        Width of the output; each head has dim / heads channels with ``concat``, else dim.
    heads : int
        Number of attention heads.
    version : {1, 2}
        Attention score.
    concat : bool
        Concatenate the heads; False: average them.
    self_loops : bool
        Attend to the node itself too; its e_ii is the mean of its e_ij.
    negative_slope : float
        Negative slope of the LeakyReLU.
    dropout : float
        Dropout probability of attention weights.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Optional: ``edge_attr`` ``(E, D)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    Equal to PyG's GATConv and GATv2Conv. In version 1, PyG has ``a · W_e e_ij``, which is one vector a_e here.
    Version 2 is one fused kernel (:meth:`protgraph.ops.Edges.additive_attention`).

    References
    ----------
    Veličković et al. 2018, arXiv:1710.10903, eqs. 1–6; Brody, Alon & Yahav 2022, arXiv:2105.14491, eq. 7.
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
        version: int = 2,
        concat: bool = True,
        self_loops: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        if version not in (1, 2):
            raise OptionError(f"version={version!r} is not 1 (Veličković et al. 2018) or 2 (Brody et al. 2022).")
        width, edge_width = self.scalar_width("h"), self.scalar_width("edge_attr")
        channels = split_heads(dim, heads) if concat else dim
        score = _ScoreV1 if version == 1 else _ScoreV2
        self.score = score(width, edge_width, heads, channels, negative_slope)
        self.concat, self.self_loops = concat, self_loops
        self.dropout = nn.Dropout(dropout)
        self.bias = nn.Parameter(torch.zeros(dim))
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: neighbors weighted by softmax of their scores, heads concatenated or averaged."""
        edges = f["edges"]
        keep = None  # factors of the weights from dropout
        if self.training and self.dropout.p:
            keep = self.dropout(f["h"].new_ones(edges.num_edges, self.score.heads))
        attended: _Attended = self.score(f["h"], edges, f.get("edge_attr"), keep, self.self_loops)
        out = attended.out
        weight = attended.weight

        # the softmax over the neighbors and the node itself
        self_weight = None
        if attended.self_logit is not None:
            self_weight = (attended.self_logit - attended.log_sum).sigmoid()  # (N, H)
            of_neighbors = (1 - self_weight).unsqueeze(-1) * out
            out = of_neighbors + self.dropout(self_weight).unsqueeze(-1) * attended.values
        if self.is_recording:
            if self_weight is not None:
                weight = weight * edges.target(1 - self_weight)
            self.record_attention(EdgeWeights(edges.index, weight, self_weight))

        h = out.flatten(1) if self.concat else out.mean(1)
        return {"h": h + self.bias}


class _Attended(NamedTuple):
    """Attention of each node to its neighbors."""

    values: Tensor  # (N, H, C)
    out: Tensor  # (N, H, C), weighted sums of values
    log_sum: Tensor  # (N, H), log-sum-exp of the logits
    weight: Tensor  # (E, H)
    self_logit: Tensor | None  # (N, H); None without self loops


class _ScoreV1(nn.Module):
    """Values, attention to neighbors, and self logits of Veličković et al. 2018, eq. 3."""

    def __init__(self, width: int, edge_width: int, heads: int, channels: int, slope: float) -> None:
        super().__init__()
        self.heads, self.slope = heads, slope
        self.linear = nn.Linear(width, heads * channels, bias=False)
        self.att_src = nn.Parameter(torch.empty(heads, channels))
        self.att_dst = nn.Parameter(torch.empty(heads, channels))
        self.att_edge = nn.Linear(edge_width, heads, bias=False) if edge_width else None
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)

    def forward(self, h: Tensor, edges: Edges, e: Tensor | None, keep: Tensor | None, self_loops: bool) -> _Attended:
        x = self.linear(h).view(h.size(0), self.heads, -1)  # (N, H, C)
        source = (x * self.att_src).sum(-1)  # (N, H)
        target = (x * self.att_dst).sum(-1)  # (N, H)
        edge = None if self.att_edge is None else self.att_edge(e)  # (E, H)
        logits = leaky_relu(edges.pair_sum(target, source, edge), self.slope)
        out, log_sum, weight = edges.attend(x, logits, keep)
        self_logit = None
        if self_loops:
            z = source + target
            if edge is not None:
                z = z + edges.mean(edge)
            self_logit = leaky_relu(z, self.slope)
        return _Attended(x, out, log_sum, weight, self_logit)


class _ScoreV2(nn.Module):
    """Values, attention and self logits as in :class:`_ScoreV1`, of Brody et al. 2022, eq. 7."""

    def __init__(self, width: int, edge_width: int, heads: int, channels: int, slope: float) -> None:
        super().__init__()
        self.heads, self.slope = heads, slope
        self.source = nn.Linear(width, heads * channels)
        self.target = nn.Linear(width, heads * channels)
        self.edge = nn.Linear(edge_width, heads * channels, bias=False) if edge_width else None
        self.att = nn.Parameter(torch.empty(heads, channels))
        for name, weight in self.named_parameters():
            nn.init.zeros_(weight) if name.endswith("bias") else nn.init.xavier_uniform_(weight)

    def forward(self, h: Tensor, edges: Edges, e: Tensor | None, keep: Tensor | None, self_loops: bool) -> _Attended:
        source = self.source(h)  # (N, H C)
        target = self.target(h)  # (N, H C)
        x = source.view(h.size(0), self.heads, -1)  # (N, H, C)
        edge_map = None
        if self.edge is None:
            e = None
        else:
            edge_map = self.edge.weight
        out, log_sum, weight = edges.additive_attention(
            x, target, self.att, slope=self.slope, e=e, weight=edge_map, keep=keep
        )
        self_logit = None
        if self_loops:
            z = source + target
            if self.edge is not None and e is not None:
                z = z + self.edge(edges.mean(e))
            activated = leaky_relu(z, self.slope).view_as(x)
            self_logit = (activated * self.att).sum(-1)
        return _Attended(x, out, log_sum, weight, self_logit)
