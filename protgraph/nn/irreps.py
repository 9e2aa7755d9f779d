"""Blocks of irreps as plain integers, and spherical harmonics, in a form that ``torch.compile`` can trace.

``torch.compile`` cannot guard on an ``e3nn.o3.Irrep``, a tuple without length (e3nn 0.6.0, torch 2.13, 2026-11-22).
Forward passes read these integers; constructors read ``Irreps``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from protgraph.data.graph.fields import irreps_terms

if TYPE_CHECKING:
    from e3nn import o3

__all__ = ["component_harmonics", "irreps_blocks", "named_irreps_blocks"]


def irreps_blocks(irreps: o3.Irreps) -> tuple[tuple[int, int], ...]:
    """Return the multiplicity and the dimension 2l+1 of each block."""
    return tuple((mul, ir.dim) for mul, ir in irreps)


@lru_cache
def named_irreps_blocks(irreps: str) -> tuple[tuple[int, int], ...]:
    """Return :func:`irreps_blocks` of irreps by name, e.g. "16x0e+8x1o"; a constant of compiled functions."""
    return tuple((count, 2 * degree + 1) for count, degree, _ in irreps_terms(irreps))


# What torch.compiler.assume_constant_result sets. That function imports torch._dynamo, 2 s (torch 2.13, 2026-11-23).
setattr(named_irreps_blocks, "_dynamo_marked_constant", True)  # noqa: B010 -- not an attribute of the cache's type


def component_harmonics(lmax: int) -> o3.SphericalHarmonics:
    """Create a module of the real spherical harmonics up to ``lmax``, with e3nn's normalization "component".

    It maps ``(E, 3)`` unit vectors to ``(E, (lmax + 1)²)`` and calls no scripted function.
    """
    from e3nn import get_optimization_defaults, o3, set_optimization_defaults

    mode = get_optimization_defaults()["jit_mode"]
    set_optimization_defaults(jit_mode="eager")
    try:
        return o3.SphericalHarmonics(list(range(lmax + 1)), normalize=False, normalization="component")
    finally:
        set_optimization_defaults(jit_mode=mode)
