"""Orders of decoding: fixed residues first, then the others at random, from N to C terminus, or in tied groups."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.ops import Proteins

__all__ = ["forward_order", "random_decoding_order", "decoding_ranks", "tie_order"]


def random_decoding_order(designed: Tensor, proteins: Proteins, noise: Tensor) -> Tensor:
    """Nodes in the order in which they are decoded: fixed ones by ``|noise|``, then designed ones, in every protein.

    Parameters
    ----------
    designed : Tensor
        ``(N,)`` bool; the others come first, in random order too.
    proteins : Proteins
    noise : Tensor
        ``(N,)`` or ``(S, N)`` normal deviates.

    Returns
    -------
    Tensor
        Of the shape of ``noise``, int64: protein after protein, its nodes in their order.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (random decoding order).

    Notes
    -----
    Their program sorts by ``(designed + 1e-4) |noise|``, which is the same unless a designed residue has a deviate near
    0: it then comes before fixed ones.
    """
    by_noise = noise.abs().sort(dim=-1, stable=True)[1]
    order = by_noise.gather(-1, designed.long()[by_noise].sort(dim=-1, stable=True)[1])
    return order.gather(-1, proteins.batch[order].sort(dim=-1, stable=True)[1])


def forward_order(designed: Tensor, proteins: Proteins, copies: int = 1) -> Tensor:
    """Fixed residues first, then the designed ones, both in the order of nodes; ``(copies, N)`` int64."""
    return _within(designed.double(), proteins).expand(copies, -1)


def decoding_ranks(order: Tensor, proteins: Proteins) -> Tensor:
    """The place of each node in its protein's order: ``(S, N)`` or ``(N,)`` orders to the same shape."""
    place = torch.arange(order.size(-1), device=order.device) - proteins.ptr[:-1][proteins.batch]
    return torch.empty_like(order).scatter_(-1, order, place.expand_as(order).contiguous())


def tie_order(order: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """The order with the nodes of each group next to each other, where the first of them comes.

    Parameters
    ----------
    order : Tensor
        ``(N,)`` int64.
    groups : sequence of sequence of int
        Nodes that are to have one type, in the order in which they are worked out; no node in two of them.

    Raises
    ------
    OptionError
        A node is in two groups.
    """
    of = {}
    for group in groups:
        for node in group:
            if node in of:
                raise OptionError(f"node {node} is tied twice; each residue belongs to one group")
            of[node] = group
    tied: dict[int, None] = {}
    for node in order.tolist():
        tied |= dict.fromkeys(of.get(node, (node,)))
    return torch.tensor(list(tied), device=order.device)


def _within(key: Tensor, proteins: Proteins) -> Tensor:
    """``(…, N)`` sorted by key in each protein, stable."""
    order = key.sort(dim=-1, stable=True)[1]
    return order.gather(-1, proteins.batch[order].sort(dim=-1, stable=True)[1])
