"""Attention within proteins where some pairs have a bias: the complete graph, without an edge for every pair."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from protgraph.data.edges import Edges, Proteins

__all__ = ["protein_attention"]


def protein_attention(
    q: Tensor, k: Tensor, v: Tensor, proteins: Proteins, edges: Edges | None = None, bias: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """``Σ_j a_ij v_j`` with ``a_ij = softmax_j(q_i · k_j + bias_ij)``, j over all nodes of the protein of i.

    Parameters
    ----------
    q, k : Tensor
        ``(N, H, D)``, scaled already.
    v : Tensor
        ``(N, H, V)``.
    proteins : Proteins
    edges : Edges, optional
        The pairs j → i that have a bias, none twice; it is 0 for all others.
    bias : Tensor, optional
        ``(E, H)``.

    Returns
    -------
    out : Tensor
        ``(N, H, V)``.
    weight : Tensor or None
        ``(E, H)``, a_ij of the given edges.

    Notes
    -----
    On a CPU one protein after the other, without padding; on CUDA, or where all have one size, all at once.
    """
    sizes, heads, longest = proteins.sizes, q.size(1), max(proteins.sizes)
    places = None if edges is None else _Places(edges, proteins, heads)
    if len(set(sizes)) == 1:
        parts = (x.unflatten(0, (len(sizes), longest)) for x in (q, k, v))
        out, weight = _attend(*parts, place=places and places.all(longest), bias=bias)
        return out.flatten(0, 1), weight
    if q.is_cuda:
        (q, real), (k, _), (v, _) = (proteins.pad(x) for x in (q, k, v))
        out, weight = _attend(q, k, v, place=places and places.all(longest), bias=bias, real=real)
        return proteins.unpad(out), weight
    made = []
    for b, parts in enumerate(zip(*(proteins.split(x) for x in (q, k, v)), strict=True)):
        place, own = (None, None) if places is None else (places.of(b), bias[places.rows[b]])
        made.append(_attend(*(x.unsqueeze(0) for x in parts), place=place, bias=own))
    out = torch.cat([o.squeeze(0) for o, _ in made])
    return out, None if edges is None else torch.cat([weight for _, weight in made])


class _Places:
    """Where in a ``(B, H, L, L)`` tensor of pairs (i, j), flattened, the values of edges stand."""

    def __init__(self, edges: Edges, proteins: Proteins, heads: int) -> None:
        self.protein = proteins.batch.index_select(0, edges.index[1])  # (E,)
        self.source, self.target = edges.index - proteins.ptr.index_select(0, self.protein)  # from 0 in each protein
        self.head = torch.arange(heads, device=self.protein.device)
        self.sizes = proteins.sizes
        self._ends = edges.ptr, proteins.ptr

    @cached_property
    def rows(self) -> list[slice]:
        """The edges of each protein, which stand together; asks the device."""
        ends = self._ends[0].index_select(0, self._ends[1]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def all(self, length: int) -> Tensor:
        """``(E, H)`` places where every protein is L long."""
        return self._place(self.protein, self.target, self.source, length)

    def of(self, b: int) -> Tensor:
        """``(E_b, H)`` places of the edges of one protein, alone."""
        own = self.rows[b]
        return self._place(torch.zeros_like(self.protein[own]), self.target[own], self.source[own], self.sizes[b])

    def _place(self, protein: Tensor, target: Tensor, source: Tensor, length: int) -> Tensor:
        line = protein[:, None] * len(self.head) + self.head  # (E, H)
        return (line * length + target[:, None]) * length + source[:, None]


def _attend(
    q: Tensor, k: Tensor, v: Tensor, *, place: Tensor | None, bias: Tensor | None, real: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Proteins of one length, ``(B, L, H, ·)``; ``real`` ``(B, L)`` is False for padding."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B, H, L, ·)
    logits = q @ k.mT  # (B, H, L, L)
    if place is not None:
        logits = logits.flatten().index_add(0, place.flatten(), bias.flatten()).view_as(logits)
    if real is not None:
        logits = logits.masked_fill(~real[:, None, None], -torch.inf)
    a = logits.softmax(-1)
    weight = None if place is None else a.flatten().index_select(0, place.flatten()).view_as(place)
    return (a @ v).transpose(1, 2), weight
