"""Where residues are along the sequence, as attention sees it: added to features, turned into queries and keys, or
added to logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from protgraph.errors import FieldError, OptionError
from protgraph.nn.dot_product_attention import PairTerm
from protgraph.ops import PaddedBlock, Proteins

__all__ = [
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

#: Places between the end of a chain and the start of the next: ESMFold's ``residue_index_offset`` (Lin et al. 2023,
#: doi:10.1126/science.ade2574).
CHAIN_GAP = 512

#: What a layer that reads chains as one sequence states of its conformity.
CHAINS_IN_ORDER = {"node_order": "places of several chains follow each other in the order of the file, as in ESMFold"}


@dataclass(frozen=True, eq=False)
class PositionCode:
    """How a module tells places along the sequence apart, to be looked at; it gives one as ``position_code(length)``.

    Parameters
    ----------
    kind : {"sinusoidal", "learned", "rotary", "offset"}
    values : Tensor
        For places 0, 1, … the ``(length, C)`` numbers added to features, or, rotary, cosines of the angles that pairs
        of channels are turned by; for offsets the ``(heads, 2 reach + 1)`` numbers added to logits.
    """

    kind: Literal["sinusoidal", "learned", "rotary", "offset"]
    values: Tensor


def position_index(seq_pos: Tensor, proteins: Proteins, chain: Tensor | None = None) -> Tensor:
    """One number for the place of each residue, so that differences mean distances along the sequence.

    Parameters
    ----------
    seq_pos : Tensor
        ``(N,)`` int64, position along the chain, counting unresolved gaps.
    proteins : Proteins
    chain : Tensor, optional
        ``(N,)`` int64. Given, each chain starts :data:`CHAIN_GAP` after the end of the one with the next lower number;
        else residues of all chains at one position have one place.

    Returns
    -------
    Tensor
        ``(N,)`` int64, of the order of nodes independent.
    """
    if chain is None or seq_pos.numel() == 0:
        return seq_pos
    order = torch.argsort(seq_pos, stable=True)
    for key in (chain, proteins.batch):
        order = order.index_select(0, torch.argsort(key.index_select(0, order), stable=True))
    pos, chain, batch = (x.index_select(0, order) for x in (seq_pos, chain, proteins.batch))
    step = torch.where(chain.diff() == 0, pos.diff(), CHAIN_GAP)
    step = torch.where(batch.diff() == 0, step, 0)  # from one protein to the next
    place = torch.cat([step.new_zeros(1), step]).cumsum(0)
    start = proteins.ptr[:-1].index_select(0, batch)  # each protein's first node in this order
    place = place - (place - pos).index_select(0, start)
    return torch.empty_like(place).index_copy(0, order, place)


def sinusoid(place: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """``sin(p ω_c)`` and ``cos(p ω_c)`` in turn, ``ω_c = 10000^(-2c/dim)``: ``(N,)`` to ``(N, dim)``.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5.
    """
    angle = _angles(place, dim + dim % 2, dtype)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :dim]


def rotate(x: Tensor, place: Tensor) -> Tensor:
    """Each pair of channels (c, c + D/2) turned by the angle ``p ω_c``, ``ω_c = 10000^(-2c/D)``.

    The scalar product of two rotated vectors depends on the difference of their places alone.

    Parameters
    ----------
    x : Tensor
        ``(N, H, D)``, D even.
    place : Tensor
        ``(N,)``.

    Notes
    -----
    Channels are paired as in GPT-NeoX and ESM-2 (first half with second half), not neighbor with neighbor.

    References
    ----------
    Su et al. 2021, arXiv:2104.09864, eqs. 14–15 and 34.
    """
    angle = _angles(place, x.size(-1), x.dtype).unsqueeze(1)  # (N, 1, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def rotary_code(length: int, dim: int) -> PositionCode:
    """The angles of :func:`rotate` for heads of ``dim`` channels."""
    return PositionCode("rotary", _angles(torch.arange(length), dim, torch.float64).cos())


def offset_bins(i: Tensor, j: Tensor, chain_i: Tensor | None, chain_j: Tensor | None, reach: int) -> Tensor:
    """``p_j - p_i`` clipped to ±reach and counted from 0; 2 reach + 1 where the chains differ.

    Parameters
    ----------
    i, j : Tensor
        ``(…, L)`` and ``(…, M)`` int64, positions along the chain.
    chain_i, chain_j : Tensor, optional
        Of the same shapes; None: all of one chain.
    reach : int

    Returns
    -------
    Tensor
        ``(…, L, M)`` int64.
    """
    bins = (j.unsqueeze(-2) - i.unsqueeze(-1)).clamp_(-reach, reach).add_(reach)
    if chain_i is None or chain_j is None:
        return bins
    return bins.masked_fill_(chain_i.unsqueeze(-1) != chain_j.unsqueeze(-2), 2 * reach + 1)


class OffsetBias(nn.Module):
    """``t_ij = b[h, clip(p_j - p_i, ±reach)]``, and one number of its own for residues of other chains.

    Parameters
    ----------
    heads : int
    reach : int
        Offsets beyond it count as it.
    chains : bool
        Whether chains are told apart.

    References
    ----------
    Raffel et al. 2020, arXiv:1910.10683, sec. 2.1 (without its logarithmic bins); reach 32 and the bin for other chains
    as in AlphaFold-Multimer, Evans et al. 2021, doi:10.1101/2021.10.04.463034, algorithm 5.
    """

    def __init__(self, heads: int, *, reach: int = 32, chains: bool = True) -> None:
        super().__init__()
        if reach < 1:
            raise OptionError(f"reach={reach}: offsets are told apart up to 1 residue or more")
        self.reach, self.chains = reach, chains
        self.table = nn.Parameter(torch.randn(heads, 2 * reach + 1 + chains) * 0.02)

    def forward(
        self, seq_pos: Tensor, chain: Tensor | None, *, key_pos: Tensor | None = None, key_chain: Tensor | None = None
    ) -> PairTerm:
        """The term for residues that ask and, where they are others, that answer; no pair is looked at before it is
        asked for."""
        key_pos, key_chain = (seq_pos, chain) if key_pos is None else (key_pos, key_chain)

        def term(block: PaddedBlock, rows: slice) -> Tensor:
            i, j = block.rows.take(seq_pos)[:, rows], block.columns.take(key_pos)
            if chain is None:
                bins = offset_bins(i, j, None, None, self.reach)  # (b, l, M)
            else:
                own, other = block.rows.take(chain)[:, rows], block.columns.take(key_chain)
                bins = offset_bins(i, j, own, other, self.reach)
            return self.table.index_select(1, bins.flatten()).view(-1, *bins.shape).transpose(0, 1)

        return term

    def position_code(self, length: int) -> PositionCode:
        """The bias of each head for offsets -reach … reach, without that for other chains."""
        return PositionCode("offset", self.table.detach()[:, : 2 * self.reach + 1])


class LearnedPositions(nn.Embedding):
    """A learned vector for each place, ``P[p]``, p from 0 to max_len - 1.

    Parameters
    ----------
    max_len : int
    dim : int
    ends : int
        Places more before 0 and after the last: 1 where sequences stand between a start and an end token.

    References
    ----------
    Gehring et al. 2017, arXiv:1705.03122, sec. 3.1; Devlin et al. 2019, arXiv:1810.04805, fig. 2.
    """

    def __init__(self, max_len: int, dim: int, *, ends: int = 0) -> None:
        super().__init__(max_len + 2 * ends, dim)
        self.max_len, self.ends = max_len, ends

    def forward(self, place: Tensor) -> Tensor:
        """``(N,)`` int64 to ``(N, dim)``; a :class:`FieldError` where a place is beyond the last."""
        # On a GPU the lookup itself stops at a place that it does not have; to look before is to wait for it.
        if place.device.type == "cpu" and place.numel() and int(place.max()) >= self.max_len + self.ends:
            raise FieldError(
                f"a residue has position {int(place.max()) - self.ends}; learned positions end at "
                f"max_len - 1 = {self.max_len - 1}"
            )
        return super().forward(place + self.ends)

    def position_code(self, length: int) -> PositionCode:
        """The vectors of places from 0 on."""
        return PositionCode("learned", self.weight.detach()[self.ends :][: min(length, self.max_len)])


def _angles(place: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """``(N, dim / 2)``, in float32 at least."""
    kind = torch.promote_types(dtype, torch.float32)
    exponent = torch.arange(0, dim, 2, dtype=kind, device=place.device) / dim
    return place.to(kind).unsqueeze(1) * 10000.0**-exponent
