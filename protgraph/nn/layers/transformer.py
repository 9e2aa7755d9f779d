"""Attention of every residue to every residue of its protein, with nothing around it: ``transformer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.kv_cache import KVCache
from protgraph.nn.mlp import split_heads
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import CAUSAL

__all__ = ["Transformer"]
ENTRY_POINTS = {"protgraph.layers": {"transformer": "Transformer"}}


class Transformer(GraphLayer):
    """``h'_i = ‖_heads Σ_j softmax_j(q_i · k_j / sqrt(d)) v_j + R h_i``, j over all nodes of the protein of i.

    The graph is complete, itself included, and its N² edges are never made.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the result; each head has d = dim / heads channels.
    heads : int
        Attention heads.
    root : bool
        Whether to add ``R h_i``.
    causal : bool
        Node i sees the nodes of its protein up to itself, in their order in the batch.
    dropout : float
        Probability of leaving out an attention coefficient.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, proteins. Writes: h ``(N, dim)``, ``dim x 0e``.

    Equal to PyG's TransformerConv(concat=True) on the explicit complete graph with self edges; ``graph_transformer`` is
    the same on the edges of a graph. ``attention`` has an output projection, positions and biases, ``pre_norm_block``
    and ``post_norm_block`` are whole blocks as of Vaswani et al.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, eq. 1; Shi et al. 2021, arXiv:2009.03509, eqs. 3–4.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        heads: int = 4,
        root: bool = True,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.shape = (3, heads, split_heads(dim, heads))
        self.qkv = nn.Linear(width, 3 * dim)
        self.root = nn.Linear(width, dim) if root else None
        self.attention = DotProductAttention(causal=causal, dropout=dropout)
        self.declare(h=f"{dim}x0e")
        if causal:
            self.conformity = Conformity(expected_failures=CAUSAL)

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        q, k, v = self._heads(f["h"])
        return {"h": self._result(f["h"], self.attention(q, k, v, f["proteins"]))}

    def step(self, f: Mapping[str, Tensor], cache: KVCache) -> tuple[dict[str, Tensor], KVCache]:
        if not self.attention.causal:
            raise WiringError("transformer sees later nodes too: only a causal one goes on from those before")
        q, k, v = self._heads(f["h"])
        cache = cache.append(f["proteins"], k=k, v=v)
        k, v = cache["k"].flatten(0, 1), cache["v"].flatten(0, 1)
        out = self.attention(q, k, v, f["proteins"], keys=cache.proteins())
        return {"h": self._result(f["h"], out)}, cache

    def _heads(self, h: Tensor) -> tuple[Tensor, ...]:
        return self.qkv(h).unflatten(1, self.shape).unbind(1)  # each (N, H, D)

    def _result(self, h: Tensor, out: Tensor) -> Tensor:
        out = out.flatten(1)  # (N, dim)
        return out if self.root is None else out + self.root(h)
