"""Plain multi-head attention on the complete graph of each protein."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import CAUSAL, split_heads

__all__ = ["Transformer"]
ENTRY_POINTS = {"protgraph.layers": {"transformer": "Transformer"}}


class Transformer(GraphLayer):
    """Multi-head attention on the complete graph of each protein, self loops included; no N² edges are materialized.

    ``h'_i = ‖_heads Σ_j softmax_j(q_i · k_j / sqrt(d)) v_j + R h_i``, j over all nodes of the protein of i.

    Parameters
    ----------
    dim : int
        Width of the output; each head has dim / heads channels.
    heads : int
        Number of attention heads.
    root : bool
        Add ``R h_i``.
    causal : bool
        Node i attends to itself and to earlier nodes of its protein, in the order of the batch.
    dropout : float
        Dropout probability of attention weights.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    Equal to PyG's TransformerConv(concat=True) on explicit complete edges with self loops. ``graph_transformer`` is the
    same along the edges of a graph; ``attention`` adds an output projection, positions and biases; ``pre_norm_block``
    and ``post_norm_block`` are whole transformer blocks.

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

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: attention over all nodes of the protein, and the feed-forward network."""
        h = f["h"]
        q, k, v = self.qkv(h).unflatten(1, self.shape).unbind(1)  # each (N, H, D)
        out = self.attention(q, k, v, f["proteins"]).flatten(1)  # (N, dim)
        return {"h": out if self.root is None else out + self.root(h)}
