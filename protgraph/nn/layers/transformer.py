"""Attention of every residue to every residue of its protein: ``transformer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from protgraph.data.edges import Proteins
from protgraph.data.fields import FieldSpec
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

    Equal to PyG's TransformerConv(concat=True) on the explicit complete graph with self edges. There is no output
    projection: ``linear`` or ``mlp`` after it makes the block of Vaswani et al.

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
        self.heads, self.dropout = heads, dropout
        self.channels = split_heads(dim, heads)
        self.qkv = nn.Linear(width, 3 * dim)
        self.root = nn.Linear(width, dim) if root else None
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h, proteins = f["h"], f["proteins"]
        qkv = self.qkv(h).view(h.size(0), 3, self.heads, self.channels)
        p = self.dropout if self.training else 0.0
        if len(set(proteins.sizes)) == 1:
            out = _attend_equal(qkv, len(proteins), p)
        elif h.is_cuda:
            out = _attend_padded(qkv, proteins, p)
        else:
            out = _attend_each(qkv, proteins, p)
        out = out.flatten(1)  # (N, dim)
        return {"h": out if self.root is None else out + self.root(h)}


def _attend_equal(qkv: Tensor, num: int, dropout: float) -> Tensor:
    """Proteins of one size are a batch as they stand: ``(N, 3, H, D)`` to ``(N, H, D)``."""
    q, k, v = qkv.view(num, -1, *qkv.shape[1:]).permute(2, 0, 3, 1, 4)  # each (B, H, L, D)
    out = scaled_dot_product_attention(q, k, v, dropout_p=dropout)
    return out.transpose(1, 2).flatten(0, 1)


def _attend_each(qkv: Tensor, proteins: Proteins, dropout: float) -> Tensor:
    """One call a protein, without padding: what is fastest where calls are cheap (CPU)."""
    parts = [_attend_equal(part, 1, dropout) for part in proteins.split(qkv) if part.size(0)]
    return torch.cat(parts) if parts else qkv[:, 0]


def _attend_padded(qkv: Tensor, proteins: Proteins, dropout: float) -> Tensor:
    """One call for all proteins, padded to the longest, with padding masked out as keys (CUDA)."""
    padded, real = proteins.pad(qkv)  # (B, L, 3, H, D), (B, L)
    q, k, v = padded.permute(2, 0, 3, 1, 4)
    out = scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None], dropout_p=dropout)
    return proteins.unpad(out.transpose(1, 2))
