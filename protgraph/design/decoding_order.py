"""Decoding orders: fixed residues first, then designed ones at random, from N to C terminus, or in tied groups."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.ops import Proteins

__all__ = ["forward_order", "random_decoding_order", "decoding_ranks", "tie_order"]


def random_decoding_order(designed: Tensor, proteins: Proteins, noise: Tensor) -> Tensor:
    """Return nodes in decoding order: in every protein fixed ones by ``|noise|``, then designed ones by ``|noise|``.

    Parameters
    ----------
    designed : Tensor
        ``(N,)`` bool, designed nodes.
    proteins : Proteins
    noise : Tensor
        ``(N,)`` or ``(S, N)`` normal deviates.

    Returns
    -------
    Tensor
        Shape of ``noise``, int64: protein after protein, the nodes of each in decoding order.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (random decoding order).

    Notes
    -----
    The reference program sorts by ``(designed + 1e-4) |noise|``. The orders differ only if a designed residue has a
    deviate near 0: there it comes before fixed ones.
    """
    return _fixed_first(noise.abs().argsort(dim=-1, stable=True), designed, proteins)


def forward_order(designed: Tensor, proteins: Proteins, copies: int = 1) -> Tensor:
    """Return ``(copies, N)`` int64: fixed nodes first, then designed ones, both in node order."""
    nodes = torch.arange(len(designed), device=designed.device)
    return _fixed_first(nodes, designed, proteins).expand(copies, -1)


def decoding_ranks(order: Tensor, proteins: Proteins) -> Tensor:
    """Return the position of each node in its protein's decoding order, ``(S, N)`` or ``(N,)`` like ``order``."""
    place = torch.arange(order.size(-1), device=order.device) - proteins.ptr[:-1][proteins.batch]
    return torch.empty_like(order).scatter_(-1, order, place.expand_as(order).contiguous())


def tie_order(order: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """Move the nodes of each group next to each other, to the position of the first of them.

    Parameters
    ----------
    order : Tensor
        ``(N,)`` int64.
    groups : sequence of sequence of int
        Nodes that get the same type, in decoding order; groups are disjoint.

    Returns
    -------
    Tensor
        ``(N,)`` int64.

    Raises
    ------
    OptionError
        A node is in two groups.
    """
    group_of = {}
    for group in groups:
        for node in group:
            if node in group_of:
                raise OptionError(f"node {node} is in two tied groups. Each residue can be in one.")
            group_of[node] = group
    tied: dict[int, None] = {}
    for node in order.tolist():
        tied |= dict.fromkeys(group_of.get(node, (node,)))
    return torch.tensor(list(tied), device=order.device)


def _fixed_first(order: Tensor, designed: Tensor, proteins: Proteins) -> Tensor:
    """Sort nodes ``(…, N)`` by protein, then fixed before designed; equal ones keep their order."""
    for key in (designed.long(), proteins.batch):
        order = order.gather(-1, key[order].argsort(dim=-1, stable=True))
    return order
