"""Rotation-invariant scalars of mixed features: what heads and scalar layers may read of a vector field."""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec

__all__ = ["invariant_width", "invariants", "invariants_are_chiral"]


def invariant_width(spec: FieldSpec) -> int:
    """Columns that :func:`invariants` makes: one a channel, whatever its l."""
    return spec.dim if spec.is_scalar else spec.o3.num_irreps


def invariants_are_chiral(spec: FieldSpec) -> bool:
    """Whether a mirror image has other :func:`invariants`: pseudoscalars stay as they are."""
    return spec.chiral or any(ir.l == 0 and ir.p == -1 for _, ir in spec.o3)


def invariants(x: Tensor, spec: FieldSpec) -> Tensor:
    """``[x^(l=0), |x^(l>0)|]``: scalars as they are, one norm per channel of l > 0.

    Parameters
    ----------
    x : Tensor
        ``(N, D)`` in the flat e3nn layout of ``spec.irreps``.
    spec : FieldSpec
        What x is.

    Returns
    -------
    Tensor
        ``(N, M)`` with M the channels of x, in their order. Its gradient is 0 where a vector is 0.
    """
    if spec.is_scalar:
        return x
    parts = []
    for (mul, ir), where in zip(spec.o3, spec.o3.slices(), strict=True):
        part = x[:, where]
        parts.append(part if ir.l == 0 else torch.linalg.vector_norm(part.view(-1, mul, ir.dim), dim=-1))
    return torch.cat(parts, 1)
