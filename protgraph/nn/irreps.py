"""Features of any irreps: blocks as plain integers, harmonics, invariants and gates; e3nn is imported on first use.

``torch.compile`` cannot guard on an ``e3nn.o3.Irrep``, a tuple without length (e3nn 0.6.0, torch 2.13, 2026-11-22).
Forward passes read integers; constructors read ``Irreps``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from protgraph.data.graph.fields import FieldSpec, irreps_terms

if TYPE_CHECKING:
    from e3nn import o3

__all__ = [
    "Gate",
    "invariant_width",
    "invariants",
    "invariants_are_chiral",
    "irreps_blocks",
    "named_irreps_blocks",
]


def irreps_blocks(irreps: o3.Irreps) -> tuple[tuple[int, int], ...]:
    """Return the multiplicity and the dimension 2l+1 of each block."""
    return tuple((mul, ir.dim) for mul, ir in irreps)


@lru_cache
def named_irreps_blocks(irreps: str) -> tuple[tuple[int, int], ...]:
    """Return :func:`irreps_blocks` of irreps by name, e.g. "16x0e+8x1o"; a constant of compiled functions."""
    return tuple((count, 2 * degree + 1) for count, degree, _ in irreps_terms(irreps))


# What torch.compiler.assume_constant_result sets. That function imports torch._dynamo, 2 s (torch 2.13, 2026-11-23).
setattr(named_irreps_blocks, "_dynamo_marked_constant", True)  # noqa: B010 -- not an attribute of the cache's type


# --- rotation-invariant scalars --------------------------------------------------------------------------------------
# Not e3nn.o3.Norm: it takes the norm of scalars too, which loses their sign, and 3.0× the time forward and backward
# (e3nn 0.6.0, one thread, 8,192 rows of 64x0e+16x1o, 2026-11-22).


def invariant_width(spec: FieldSpec) -> int:
    """Return the number of columns of :func:`invariants`: one per channel, whatever its degree."""
    return spec.dim if spec.is_scalar else sum(count for count, _, _ in irreps_terms(spec.irreps))


def invariants_are_chiral(spec: FieldSpec) -> bool:
    """Return whether a mirror image has different :func:`invariants`; pseudoscalars are kept as they are."""
    return spec.chiral or any((degree, parity) == (0, -1) for _, degree, parity in irreps_terms(spec.irreps))


def invariants(x: Tensor, spec: FieldSpec) -> Tensor:
    """Compute ``[x^(l=0), |x^(l>0)|]``: scalars as they are, one norm per channel of degree l > 0.

    ``x``: ``(N, D)`` in the flat e3nn layout of ``spec.irreps``. ``spec``: irreps of x. Returns ``(N, M)`` with M the
    number of channels, in their order. The gradient is 0 where a vector is 0.
    """
    blocks = named_irreps_blocks(spec.irreps)
    if all(dim == 1 for _, dim in blocks):
        return x
    parts = []
    for part, (mul, dim) in zip(x.split([mul * dim for mul, dim in blocks], 1), blocks, strict=True):
        parts.append(part if dim == 1 else torch.linalg.vector_norm(part.view(-1, mul, dim), dim=-1))
    return torch.cat(parts, 1)


# --- gated nonlinearity ----------------------------------------------------------------------------------------------
# Not e3nn.nn.Gate: the same function took 1.8× the time forward and backward (e3nn 0.6.0, one thread, 8,192 rows,
# 2026-11-22).

# Factors that give silu(z) and sigmoid(z) unit second moment for z ~ N(0, 1), as e3nn.math.normalize2mom estimates them
# from a million samples (quadrature: 1.67653 and 1.84623). e3nn's values are used so that weights are interchangeable.
SILU_SCALE = 1.6791767923989418
SIGMOID_SCALE = 1.8467055342154763


class Gate(nn.Module):
    """Gate activation: ``s ↦ c silu(s)`` for even scalars, ``t ↦ c' sigmoid(g) t`` for every other channel t.

    Each channel t that is not an even scalar has its own gate g, an extra even scalar of the input.

    Equal to ``e3nn.nn.Gate`` with these activations.

    ``irreps``: output irreps, even scalars first, e.g. ``"64x0e+16x1o"``. ``irreps_in``: input irreps: scalars, gates,
    gated channels, e.g. ``"80x0e+16x1o"``. ``irreps_out``: output irreps.

    References
    ----------
    Weiler et al. 2018, arXiv:1807.02547, section 4.3; Geiger & Smidt 2022, arXiv:2207.09453.
    """

    def __init__(self, irreps: str) -> None:
        from e3nn import o3

        super().__init__()
        blocks = o3.Irreps(irreps)
        scalars = o3.Irreps([(mul, ir) for mul, ir in blocks if ir == o3.Irrep("0e")])
        gated = o3.Irreps([(mul, ir) for mul, ir in blocks if ir != o3.Irrep("0e")])
        gates = o3.Irreps([(gated.num_irreps, "0e")])
        self.irreps_out = (scalars + gated).simplify()
        self.irreps_in = (scalars + gates + gated).simplify()
        self._widths = [scalars.dim, gates.dim, gated.dim]
        dims = torch.tensor([ir.dim for mul, ir in gated for _ in range(mul)], dtype=torch.long)
        self.register_buffer("_spread", torch.arange(len(dims)).repeat_interleave(dims), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the gates, ``(N, irreps_in.dim)`` to ``(N, irreps_out.dim)``."""
        scalars, gates, gated = x.split(self._widths, -1)
        scalars = SILU_SCALE * silu(scalars)
        if not gated.size(-1):
            return scalars
        gates = (SIGMOID_SCALE * gates.sigmoid()).index_select(-1, self._spread)  # (N, gated)
        return torch.cat([scalars, gates * gated], -1)
