"""Rotation-invariant scalars of features with vector or higher-degree channels.

Not ``e3nn.o3.Norm``: it takes the norm of scalars too, which loses their sign, and 3.0× the time forward and backward
(e3nn 0.6.0, one thread, 8,192 rows of 64x0e+16x1o, 2026-11-22).
"""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, irreps_terms
from protgraph.nn.irreps import named_irreps_blocks

__all__ = ["invariant_width", "invariants", "invariants_are_chiral"]


def invariant_width(spec: FieldSpec) -> int:
    """Return the number of columns of :func:`invariants`: one per channel, whatever its degree."""
    return spec.dim if spec.is_scalar else sum(count for count, _, _ in irreps_terms(spec.irreps))


def invariants_are_chiral(spec: FieldSpec) -> bool:
    """Return whether a mirror image has different :func:`invariants`; pseudoscalars are kept as they are."""
    return spec.chiral or any((degree, parity) == (0, -1) for _, degree, parity in irreps_terms(spec.irreps))


def invariants(x: Tensor, spec: FieldSpec) -> Tensor:
    """Compute ``[x^(l=0), |x^(l>0)|]``: scalars as they are, one norm per channel of degree l > 0.

    Parameters
    ----------
    x : Tensor
        ``(N, D)`` in the flat e3nn layout of ``spec.irreps``.
    spec : FieldSpec
        Irreps of x.

    Returns
    -------
    Tensor
        ``(N, M)`` with M the number of channels, in their order. The gradient is 0 where a vector is 0.
    """
    blocks = named_irreps_blocks(spec.irreps)
    if all(dim == 1 for _, dim in blocks):
        return x
    parts = []
    for part, (mul, dim) in zip(x.split([mul * dim for mul, dim in blocks], 1), blocks, strict=True):
        parts.append(part if dim == 1 else torch.linalg.vector_norm(part.view(-1, mul, dim), dim=-1))
    return torch.cat(parts, 1)
