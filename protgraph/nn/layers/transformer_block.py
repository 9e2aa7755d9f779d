"""Attention and feed-forward network as one block: ``pre_norm_block`` and ``post_norm_block``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.kv_cache import KVCache
from protgraph.nn.mlp import mlp
from protgraph.nn.module import GraphLayer
from protgraph.nn.multihead import MultiHeadAttention

__all__ = ["PostNormBlock", "PreNormBlock"]
ENTRY_POINTS = {"protgraph.layers": {"post_norm_block": "PostNormBlock", "pre_norm_block": "PreNormBlock"}}

_MASK = FieldSpec("mask", "node", "1x0e", "bool", shape=())


class _Block(GraphLayer):
    """What the two orders share: the parts, and what they read."""

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    optional: ClassVar[tuple[str, ...]] = MultiHeadAttention.optional
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(inputs={"mask": _MASK})

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
        self.conformity = Conformity(inputs={"mask": _MASK}, expected_failures=self.attention.expected_failures)

    @abstractmethod
    def ask(self, h: Tensor) -> Tensor:
        """What attention sees of h, ``(N, C)``."""

    @abstractmethod
    def update(self, h: Tensor, seen: Tensor) -> Tensor:
        """The new h, ``(N, C)``, from the old one and what attention makes of it."""

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h = f["h"]
        return {"h": self.update(h, self.attention(self.ask(h), f))}

    def step(self, f: Mapping[str, Tensor], cache: KVCache) -> tuple[dict[str, Tensor], KVCache]:
        h = f["h"]
        seen, cache = self.attention.step(self.ask(h), f, cache)
        return {"h": self.update(h, seen)}, cache


class PreNormBlock(_Block):
    """``h ← h + A(norm(h))``, ``h ← h + F(norm(h))`` with attention A and ``F(x) = W₂ act(W₁ x)``.

    h itself is never normalized on the way: a ``layer_norm`` comes after the last block.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    heads : int
        Attention heads.
    hidden : int, optional
        Width inside F; None takes four times that of h.
    act : str
        Activation of F.
    position : {"rotary", "offset"}, optional
        How ``seq_pos`` is used where it is wired; None: rotary.
    gate : bool
        Whether attention is gated.
    causal : bool
        Node i sees the nodes of its protein up to itself, in their order in the batch.
    dropout : float
        Probability, of both updates; of nothing inside them, so that attention keeps its fused kernel.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, proteins; optionally what :class:`protgraph.nn.multihead.MultiHeadAttention` says.
    Writes: h ``(N, C)``, ``C x 0e``.

    References
    ----------
    Xiong et al. 2020, arXiv:2002.04745, fig. 1b; the blocks of GPT-2 and ESM-2.
    """

    def ask(self, h: Tensor) -> Tensor:
        return self.norms[0](h)

    def update(self, h: Tensor, seen: Tensor) -> Tensor:
        h = h + self.dropout(seen)
        return h + self.dropout(self.feed_forward(self.norms[1](h)))


class PostNormBlock(_Block):
    """``h ← norm(h + A(h))``, ``h ← norm(h + F(h))`` with attention A and ``F(x) = W₂ act(W₁ x)``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    heads, hidden, act, position, gate, causal, dropout
        As for :class:`PreNormBlock`.

    Notes
    -----
    Reads and writes: as :class:`PreNormBlock`.

    Deviation from the paper: GELU for its ReLU, as in BERT; ``act="relu"`` is the paper's.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.1 and eq. 2.
    """

    def ask(self, h: Tensor) -> Tensor:
        return h

    def update(self, h: Tensor, seen: Tensor) -> Tensor:
        h = self.norms[0](h + self.dropout(seen))
        return self.norms[1](h + self.dropout(self.feed_forward(h)))
