"""Attention of every residue over its protein: ``attention`` with all options, ``global_attention`` with one query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.kv_cache import KVCache
from protgraph.nn.mlp import split_heads
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import MultiHeadAttention

__all__ = ["Attention", "GlobalAttention"]
ENTRY_POINTS = {"protgraph.layers": {"attention": "Attention", "global_attention": "GlobalAttention"}}

_MASK = FieldSpec("mask", "node", "1x0e", "bool", shape=())


class Attention(GraphLayer):
    """``h'_i = W_o ‖_heads g_i ⊙ Σ_j softmax_j( q_i·k_j / √d + b_ij ) v_j``, j over all nodes of the protein of i.

    What is wired decides what it is: alone, attention of a set; with ``seq_pos``, of a sequence; with ``pair``,
    AlphaFold's row attention; with ``edges``, biased to neighbors; with ``context``, across two fields of the nodes.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the result and of all heads together.
    heads : int
        Attention heads.
    position : {"rotary", "offset"}, optional
        How ``seq_pos`` is used where it is wired; None: rotary.
    gate : bool
        Whether there is ``g = sigmoid(W_g h + b_g)``; else g = 1.
    causal : bool
        Node i sees the nodes of its protein up to itself, in their order in the batch.
    bias : bool
        Whether queries, keys and values have one.
    dropout : float
        Probability of leaving out an attention weight.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, proteins; optionally what :class:`protgraph.nn.multihead.MultiHeadAttention` says.
    Writes: h ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2; Su et al. 2021, arXiv:2104.09864 (rotary); Jumper et al. 2021,
    doi:10.1038/s41586-021-03819-2, supplement, algorithm 7 (pair bias and gate).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    optional: ClassVar[tuple[str, ...]] = MultiHeadAttention.optional
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(inputs={"mask": _MASK})

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
        self.conformity = Conformity(inputs={"mask": _MASK}, expected_failures=self.attention.expected_failures)

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": self.attention(f["h"], f)}

    def step(self, f: Mapping[str, Tensor], cache: KVCache) -> tuple[dict[str, Tensor], KVCache]:
        h, cache = self.attention.step(f["h"], f, cache)
        return {"h": h}, cache


class GlobalAttention(GraphLayer):
    """``h'_i = W_o ‖_heads g_i ⊙ Σ_j softmax_j( q·k_j / √c ) v_j`` with one query a protein, ``q = W_q mean_i h_i``.

    Keys and values are shared by all heads, gates ``g_i = sigmoid(W_g h_i + b_g)`` tell residues apart; time and memory
    are linear in N.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the result and of all heads together.
    heads : int
        Attention heads.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, proteins. Writes: h ``(N, dim)``, ``dim x 0e``.

    AlphaFold goes over the sequences of an alignment, this over the residues of a protein; h is normalized by a
    ``layer_norm`` before it. Parameters have the names of OpenFold's GlobalAttention.

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
        self.linear_g = nn.Linear(width, dim)
        self.linear_o = nn.Linear(dim, dim)
        nn.init.zeros_(self.linear_g.weight)
        nn.init.ones_(self.linear_g.bias)
        self.declare(h=f"{dim}x0e")

    @classmethod
    def from_reference(cls, state_dict: Mapping[str, Tensor]) -> GlobalAttention:
        """The layer of a ``GlobalAttention`` of OpenFold whose result is as wide as all its heads."""
        dim, width = state_dict["linear_q.weight"].shape
        fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "proteins": field("proteins")}
        layer = cls(fields, dim=dim, heads=dim // len(state_dict["linear_k.weight"]))
        layer.to(state_dict["linear_q.weight"].dtype).load_state_dict(state_dict)
        return layer

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h, proteins = f["h"], f["proteins"]
        q = self.linear_q(proteins.mean(h)).unflatten(1, (self.heads, -1))  # (B, H, c), lines 2, 3
        k, v = self.linear_k(h), self.linear_v(h)  # (N, c)
        logits = torch.einsum("nhc,nc->nh", proteins.expand(q), k) / k.size(1) ** 0.5
        weight = proteins.softmax(logits)  # line 5
        seen = proteins.sum(weight.unsqueeze(2) * v.unsqueeze(1)).flatten(1)  # (B, dim), line 6
        return {"h": self.linear_o(self.linear_g(h).sigmoid() * proteins.expand(seen))}  # lines 4, 6, 7
