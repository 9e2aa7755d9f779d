"""Positional encodings of residues along the sequence: sinusoidal, learned, rotary, and offset biases of logits."""

# Not PyG's PositionalEncoding: it ignores gaps, chains and the order of nodes (PyG 2.8.1, 2026-11-22).

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from protgraph.errors import FieldError, OptionError
from protgraph.nn.dot_product_attention import PairTerm
from protgraph.ops import PaddedBlock, Proteins

__all__ = [
    "CHAINS_IN_ORDER",
    "CHAIN_GAP",
    "OffsetBias",
    "LearnedPositions",
    "PositionCode",
    "offset_bins",
    "rotary_code",
    "rotate",
    "position_index",
    "sinusoid",
]

#: Positions between the end of a chain and the start of the next: ESMFold's ``residue_index_offset`` (Lin et al. 2023,
#: doi:10.1126/science.ade2574).
CHAIN_GAP = 512

#: Expected failure in the conformity suite of layers that read several chains as one sequence.
CHAINS_IN_ORDER = {"node_order": "chains follow each other in the order of the file, as in ESMFold"}


@dataclass(frozen=True, eq=False)
class PositionCode:
    """Positional encoding of a module as numbers, for plots; a module returns it from ``position_code(length)``.

    ``kind``: "sinusoidal", "learned", "rotary" or "offset". ``values``: Sinusoidal or learned: ``(length, C)``, added
    to the features at positions 0, 1, …. Rotary: ``(length, C)``, cosines of the rotation angles of channel pairs.
    Offset: ``(heads, 2 reach + 1)``, added to logits.
    """

    kind: Literal["sinusoidal", "learned", "rotary", "offset"]
    values: Tensor


def position_index(seq_pos: Tensor, proteins: Proteins, chain: Tensor | None = None) -> Tensor:
    """Compute one position per residue, so that differences are distances along the sequence.

    ``seq_pos``: ``(N,)`` int64, position along the chain, counting unresolved gaps. ``chain``: ``(N,)`` int64. If
    given, each chain starts :data:`CHAIN_GAP` positions after the end of the chain with the next lower number;
    otherwise residues of different chains may share a position. Returns ``(N,)`` int64, independent of the order of
    nodes.
    """
    if chain is None or seq_pos.numel() == 0:
        return seq_pos
    # sorted by protein, chain and position
    order = torch.argsort(seq_pos, stable=True)
    for key in (chain, proteins.batch):
        order = order.index_select(0, torch.argsort(key.index_select(0, order), stable=True))
    pos = seq_pos.index_select(0, order)
    chain = chain.index_select(0, order)
    batch = proteins.batch.index_select(0, order)

    # the index counts on in a protein, with a gap between chains
    step = torch.where(chain.diff() == 0, pos.diff(), CHAIN_GAP)
    step = torch.where(batch.diff() == 0, step, 0)
    index = torch.cat([step.new_zeros(1), step]).cumsum(0)
    first = proteins.ptr[:-1].index_select(0, batch)  # each protein's first node in this order
    index = index - (index - pos).index_select(0, first)
    return torch.empty_like(index).index_copy(0, order, index)


def sinusoid(position: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """Compute ``sin(p ω_c)`` and ``cos(p ω_c)`` in turn, ``ω_c = 10000^(-2c/dim)``: ``(N,)`` to ``(N, dim)``.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5.
    """
    angle = _angles(position, dim + dim % 2, dtype)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :dim]


def rotate(x: Tensor, position: Tensor) -> Tensor:
    """Rotate each pair of channels (c, c + D/2) by the angle ``p ω_c``, ``ω_c = 10000^(-2c/D)``.

    The scalar product of two rotated vectors depends on the difference of their positions only.

    Channels of the first half are paired with the second half, as in GPT-NeoX and ESM-2, not with their neighbors.

    ``x``: ``(N, H, D)``, D even. ``position``: ``(N,)`` positions p. Returns ``(N, H, D)``.

    References
    ----------
    Su et al. 2021, arXiv:2104.09864, eqs. 14–15 and 34.
    """
    angle = _angles(position, x.size(-1), x.dtype).unsqueeze(1)  # (N, 1, D/2)
    cos = angle.cos().to(x.dtype)
    sin = angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def rotary_code(length: int, dim: int) -> PositionCode:
    """Return the angles of :func:`rotate` for heads of ``dim`` channels."""
    return PositionCode("rotary", _angles(torch.arange(length), dim, torch.float64).cos())


def offset_bins(i: Tensor, j: Tensor, chain_i: Tensor | None, chain_j: Tensor | None, reach: int) -> Tensor:
    """Compute ``p_j - p_i`` clipped to ±reach and counted from 0; 2 reach + 1 for different chains.

    ``i``, ``j``: ``(…, L)`` and ``(…, M)`` int64, positions along the chain. ``chain_i``, ``chain_j``: chains, of the
    same shapes; None: one chain. ``reach``: largest offset with its own bin. Returns ``(…, L, M)`` int64.
    """
    offset = j.unsqueeze(-2) - i.unsqueeze(-1)
    bins = offset.clamp_(-reach, reach).add_(reach)
    if chain_i is None or chain_j is None:
        return bins
    is_other_chain = chain_i.unsqueeze(-1) != chain_j.unsqueeze(-2)
    return bins.masked_fill_(is_other_chain, 2 * reach + 1)


class OffsetBias(nn.Module):
    """Learned bias of attention logits per offset: ``t_ij = b[h, clip(p_j - p_i, ±reach)]``.

    Residues of different chains have one bias of their own.

    ``heads``: number of attention heads. ``reach``: largest offset with its own bias; larger offsets share the last
    one. ``chains``: distinguish chains.

    References
    ----------
    Raffel et al. 2020, arXiv:1910.10683, sec. 2.1 (without its logarithmic bins). Reach 32 and the bin of other chains:
    AlphaFold-Multimer, Evans et al. 2021, doi:10.1101/2021.10.04.463034, algorithm 5.
    """

    def __init__(self, heads: int, *, reach: int = 32, chains: bool = True) -> None:
        super().__init__()
        if reach < 1:
            raise OptionError(f"reach={reach} must be at least 1.")
        self.reach, self.chains = reach, chains
        self.table = nn.Parameter(torch.randn(heads, 2 * reach + 1 + chains) * 0.02)

    def forward(self, seq_pos: Tensor, chain: Tensor | None) -> PairTerm:
        """Return the term for attention, evaluated on demand; ``seq_pos`` and ``chain`` ``(N,)`` int64."""

        def term(block: PaddedBlock, rows: slice) -> Tensor:
            i, j = block.rows.take(seq_pos)[:, rows], block.columns.take(seq_pos)
            if chain is None:
                bins = offset_bins(i, j, None, None, self.reach)  # (b, l, M)
            else:
                own, other = block.rows.take(chain)[:, rows], block.columns.take(chain)
                bins = offset_bins(i, j, own, other, self.reach)
            return self.table.index_select(1, bins.flatten()).view(-1, *bins.shape).transpose(0, 1)

        return term

    def position_code(self, length: int) -> PositionCode:
        """Return the biases of offsets -reach … reach within a chain."""
        return PositionCode("offset", self.table.detach()[:, : 2 * self.reach + 1])


class LearnedPositions(nn.Embedding):
    """Learned vector per position, ``P[p]`` for p = 0 … max_len - 1.

    ``max_len``: number of positions. ``dim``: width of the vectors. ``ends``: additional positions before 0 and after
    the last; 1 for sequences with start and end tokens.

    References
    ----------
    Gehring et al. 2017, arXiv:1705.03122, sec. 3.1; Devlin et al. 2019, arXiv:1810.04805, fig. 2.
    """

    def __init__(self, max_len: int, dim: int, *, ends: int = 0) -> None:
        super().__init__(max_len + 2 * ends, dim)
        self.max_len, self.ends = max_len, ends

    def forward(self, index: Tensor) -> Tensor:
        """Look up positions ``(N,)`` int64, giving ``(N, dim)``.

        Raises :class:`FieldError` if a position is beyond the last one (checked on CPU only).
        """
        # Not checked on a GPU, where it would synchronize, nor while compiling; there the lookup itself fails.
        is_checked = index.device.type == "cpu" and not torch.compiler.is_compiling()
        if is_checked and index.numel() and int(index.max()) >= self.max_len + self.ends:
            raise FieldError(
                f"a residue has position {int(index.max()) - self.ends}; the last learned position is "
                f"max_len - 1 = {self.max_len - 1}. Increase max_len."
            )
        return super().forward(index + self.ends)

    def position_code(self, length: int) -> PositionCode:
        """Return the vectors of positions from 0 on."""
        return PositionCode("learned", self.weight.detach()[self.ends :][: min(length, self.max_len)])


def _angles(position: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """Compute the rotation angles, ``(N, dim / 2)``, at least in float32."""
    kind = torch.promote_types(dtype, torch.float32)
    exponent = torch.arange(0, dim, 2, dtype=kind, device=position.device) / dim
    return position.to(kind).unsqueeze(1) * 10000.0**-exponent
