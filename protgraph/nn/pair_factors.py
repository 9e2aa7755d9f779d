"""Pair features that factorize, ``z_ij = a_i ⊙ b_j``, in attention without a tensor of pairs.

A bias ``W z_ij`` is a scalar product ``(w ⊙ a_i) · b_j``, so factors extend queries and keys, and a weighted sum
``Σ_j α_ij z_ij = a_i ⊙ Σ_j α_ij b_j`` extends values. Memory is linear in residues where the kernel's is.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError

__all__ = ["PAIR_FACTORS", "check_pair_factors", "extend_by_factors"]

#: Local names of the factors a and b.
PAIR_FACTORS = ("pair_left", "pair_right")


def check_pair_factors(fields: Mapping[str, FieldSpec]) -> int:
    """Return the width of the factors, 0 if they are not wired.

    Raises
    ------
    WiringError
        If one of them is missing, or they are not scalars of nodes of equal width.
    """
    given = [name for name in PAIR_FACTORS if name in fields]
    if not given:
        return 0
    if len(given) == 1:
        raise WiringError(f"pair features of factors need {PAIR_FACTORS}, but only {given[0]!r} is wired. Wire both.")
    specs = [fields[name] for name in PAIR_FACTORS]
    if any(spec.level != "node" or not spec.is_scalar for spec in specs) or specs[0].dim != specs[1].dim:
        found = ", ".join(f"{name!r} of {s.irreps} per {s.level}" for name, s in zip(PAIR_FACTORS, specs, strict=True))
        raise WiringError(f"pair features of factors: {found}. Both must be scalars per node, of equal width.")
    return specs[0].dim


def extend_by_factors(q: Tensor, k: Tensor, left: Tensor, right: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Extend queries and keys, so that ``q'_i · k'_j = q_i · k_j + W (a_i ⊙ b_j)`` for each head.

    Parameters
    ----------
    q, k : Tensor
        ``(N, H, D)`` each.
    left, right : Tensor
        Factors a and b, ``(N, R)`` each.
    weight : Tensor
        W, ``(H, R)``.

    Returns
    -------
    Tensor, Tensor
        ``(N, H, D + R)`` each.
    """
    each = right.unsqueeze(1).expand(-1, q.size(1), -1)
    return torch.cat([q, left.unsqueeze(1) * weight], 2), torch.cat([k, each], 2)
