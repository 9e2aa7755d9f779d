"""Multi-head attention on the complete graph of each protein: the plain layer, and transformer blocks around it."""

# Not torch.nn.TransformerEncoderLayer: padded batches, no rotary positions, no pair biases (torch 2.13, 2026-11-22).

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.mlp import mlp
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import CAUSAL, MultiHeadAttention, split_heads

__all__ = ["PostNormBlock", "PreNormBlock", "Transformer"]

ENTRY_POINTS = {
    "protgraph.layers": {
        "transformer": "Transformer",
        "post_norm_block": "PostNormBlock",
        "pre_norm_block": "PreNormBlock",
    }
}


class _Block(GraphLayer):
    """Common parts and inputs of both blocks."""

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    optional: ClassVar[tuple[str, ...]] = MultiHeadAttention.optional
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = MultiHeadAttention.conformity

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        heads: int = 4,
        hidden: int | None = None,
        act: str = "gelu",
        position: str | None = None,
        gate: bool = False,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.attention = MultiHeadAttention(
            fields, width, dim=width, heads=heads, position=position, gate=gate, causal=causal
        )
        self.feed_forward = mlp([width, hidden or 4 * width, width], act=act)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.dropout = nn.Dropout(dropout)
        self.declare(h=f"{width}x0e")
        self.conformity = self.attention.conformity

    @abstractmethod
    def attention_input(self, h: Tensor) -> Tensor:
        """Return the input of attention, ``(N, C)``."""

    @abstractmethod
    def update(self, h: Tensor, attended: Tensor) -> Tensor:
        """Compute the new h ``(N, C)`` from the old one and the output of attention."""

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        h = f["h"]
        return {"h": self.update(h, self.attention(self.attention_input(h), f))}


class PreNormBlock(_Block):
    """Transformer block with layer normalization before each part (Xiong et al. 2020).

    ``h ← h + A(norm(h))``, ``h ← h + F(norm(h))`` with attention A and ``F(x) = W₂ act(W₁ x)``.

    h itself is not normalized, so a ``layer_norm`` should follow the last block.

    Parameters
    ----------
    heads : int
        Number of attention heads.
    hidden : int, optional
        Width of the hidden layer of F; None: 4 C.
    act : str
        Activation function of F.
    position : {"rotary", "offset"}, optional
        Positional encoding if ``seq_pos`` is wired; None: rotary.
    gate : bool
        Multiply each head's output by ``g = sigmoid(W_g h + b_g)``.
    causal : bool
        Node i attends to itself and to earlier nodes of its protein, in the order of the batch.
    dropout : float
        Dropout probability of both updates. There is none inside attention, which keeps its fused kernel.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Optional: see :class:`protgraph.nn.multihead.MultiHeadAttention`.
    Writes: ``h`` ``(N, C)``, ``C x 0e``.

    References
    ----------
    Xiong et al. 2020, arXiv:2002.04745, fig. 1b; the blocks of GPT-2 and ESM-2.
    """

    def attention_input(self, h: Tensor) -> Tensor:
        """Return the normalized state, ``(N, C)`` to the same shape."""
        return self.norms[0](h)

    def update(self, h: Tensor, attended: Tensor) -> Tensor:
        """Add ``attended (N, C)`` to ``h (N, C)``, then the feed-forward network of the normalized sum: ``(N, C)``."""
        h = h + self.dropout(attended)
        return h + self.dropout(self.feed_forward(self.norms[1](h)))


class PostNormBlock(_Block):
    """Transformer block with layer normalization after each residual sum (Vaswani et al. 2017).

    ``h ← norm(h + A(h))``, ``h ← norm(h + F(h))`` with attention A and ``F(x) = W₂ act(W₁ x)``.

    Parameters
    ----------
    heads, hidden, act, position, gate, causal, dropout
        See :class:`PreNormBlock`.

    Notes
    -----
    Reads and writes: as :class:`PreNormBlock`.

    Deviation from the paper: GELU instead of ReLU, as in BERT; ``act="relu"`` gives the paper's.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.1 and eq. 2.
    """

    def attention_input(self, h: Tensor) -> Tensor:
        """Return the same state ``(N, C)``."""
        return h

    def update(self, h: Tensor, attended: Tensor) -> Tensor:
        """Add ``attended (N, C)`` to ``h (N, C)`` and normalize, then so the feed-forward network: ``(N, C)``."""
        h = self.norms[0](h + self.dropout(attended))
        return self.norms[1](h + self.dropout(self.feed_forward(h)))


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
