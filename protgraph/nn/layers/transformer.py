"""Attention of every residue to every residue of its protein, with nothing around it: ``transformer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from protgraph.data.fields import FieldSpec
from protgraph.nn.attention import DotProductAttention
from protgraph.nn.base import GraphLayer
from protgraph.nn.dense import split_heads

__all__ = ["Transformer"]


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
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.shape = (3, heads, split_heads(dim, heads))
        self.qkv = nn.Linear(width, 3 * dim)
        self.root = nn.Linear(width, dim) if root else None
        self.attention = DotProductAttention(dropout=dropout)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h = f["h"]
        q, k, v = self.qkv(h).unflatten(1, self.shape).unbind(1)  # each (N, H, D)
        out = self.attention(q, k, v, f["proteins"]).flatten(1)  # (N, dim)
        return {"h": out if self.root is None else out + self.root(h)}
