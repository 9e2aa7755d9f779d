"""Attention layers within proteins: multi-head attention, and global attention with one query per protein."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.mlp import gate_linear
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import MultiHeadAttention, split_heads

__all__ = ["Attention", "GlobalAttention"]
ENTRY_POINTS = {"protgraph.layers": {"attention": "Attention", "global_attention": "GlobalAttention"}}


class Attention(GraphLayer):
    """Multi-head attention of each residue to all residues of its protein.

    ``h'_i = W_o ‖_heads g_i ⊙ Σ_j softmax_j( q_i·k_j / √d + b_ij ) v_j``, j over all nodes of the protein of i.

    The wired fields select the variant: none, attention on a set; ``seq_pos``, on a sequence; ``pair``, AlphaFold's row
    attention; ``pair_left`` and ``pair_right``, the same with factors of the pair features, in linear memory;
    ``edges``, biased to neighbors; ``context``, cross-attention to another field of the nodes.

    Parameters
    ----------
    dim : int
        Width of the output; each head has dim / heads channels.
    heads : int
        Number of attention heads.
    position : {"rotary", "offset"}, optional
        Positional encoding if ``seq_pos`` is wired; None: rotary.
    gate : bool
        Multiply each head's output by ``g = sigmoid(W_g h + b_g)``.
    causal : bool
        Node i attends to itself and to earlier nodes of its protein, in the order of the batch.
    bias : bool
        Add biases to queries, keys and values.
    dropout : float
        Dropout probability of attention weights.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Optional: see :class:`protgraph.nn.multihead.MultiHeadAttention`.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2. Rotary: Su et al. 2021, arXiv:2104.09864. Pair bias and gate:
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 7.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    optional: ClassVar[tuple[str, ...]] = MultiHeadAttention.optional
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = MultiHeadAttention.conformity

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        heads: int = 4,
        position: str | None = None,
        gate: bool = False,
        causal: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.attention = MultiHeadAttention(
            fields, width, dim=dim, heads=heads, position=position, gate=gate, causal=causal, bias=bias, dropout=dropout
        )
        self.declare(h=f"{dim}x0e")
        self.conformity = self.attention.conformity

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: attention between the nodes of each protein."""
        return {"h": self.attention(f["h"], f)}


class GlobalAttention(GraphLayer):
    """Attention with one query per protein, linear in N (Jumper et al. 2021).

    ``h'_i = W_o ‖_heads g_i ⊙ Σ_j softmax_j( q·k_j / √c ) v_j`` with ``q = W_q mean_i h_i``.

    Keys and values are shared by all heads. Only the gates ``g_i = sigmoid(W_g h_i + b_g)`` differ between residues.

    Parameters
    ----------
    dim : int
        Width of the output; each head has dim / heads channels.
    heads : int
        Number of attention heads.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    AlphaFold averages over the sequences of an alignment, this layer over the residues of a protein. h is normalized by
    a ``layer_norm`` before it. Parameters have the names of OpenFold's GlobalAttention.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 19.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 64, heads: int = 4) -> None:
        super().__init__(fields)
        width, self.heads = self.scalar_width("h"), heads
        channels = split_heads(dim, heads)
        self.linear_q = nn.Linear(width, dim, bias=False)
        self.linear_k = nn.Linear(width, channels, bias=False)
        self.linear_v = nn.Linear(width, channels, bias=False)
        self.linear_g = gate_linear(width, dim)
        self.linear_o = nn.Linear(dim, dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: gated attention with one query per protein, linear in its size."""
        h, proteins = f["h"], f["proteins"]
        q = self.linear_q(proteins.mean(h)).unflatten(1, (self.heads, -1))  # (B, H, c), lines 2, 3
        k, v = self.linear_k(h), self.linear_v(h)  # (N, c)
        logits = torch.einsum("nhc,nc->nh", proteins.expand(q), k) / k.size(1) ** 0.5
        weight = proteins.softmax(logits)  # line 5
        summed = proteins.sum(weight.unsqueeze(2) * v.unsqueeze(1)).flatten(1)  # (B, dim), line 6
        return {"h": self.linear_o(self.linear_g(h).sigmoid() * proteins.expand(summed))}  # lines 4, 6, 7
