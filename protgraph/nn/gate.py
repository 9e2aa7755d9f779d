"""The nonlinearity of equivariant networks: scalars through SiLU, everything else times a learned scalar."""

from __future__ import annotations

import torch
from e3nn import o3
from torch import Tensor, nn
from torch.nn.functional import silu

__all__ = ["Gate"]

# What makes the second moment of silu(z) and sigmoid(z) one for z ~ N(0, 1), as e3nn.math.normalize2mom estimates
# it from a million samples (by quadrature 1.67653 and 1.84623): the same numbers, so that weights carry over.
SILU_SCALE = 1.6791767923989418
SIGMOID_SCALE = 1.8467055342154763


class Gate(nn.Module):
    """``s ↦ c silu(s)`` for even scalars, ``t ↦ c' sigmoid(g) t`` for every other channel t with its gate g.

    Parameters
    ----------
    irreps : str
        What comes out: even scalars first, then the rest (``"64x0e+16x1o"``).

    Attributes
    ----------
    irreps_in, irreps_out : e3nn.o3.Irreps
        In comes one more even scalar, the gate, per channel that is no even scalar: ``"80x0e+16x1o"``.

    Notes
    -----
    The same function as ``e3nn.nn.Gate`` with these activations, without its code generation and buffers.

    References
    ----------
    Weiler et al. 2018, arXiv:1807.02547, section 4.3; Geiger & Smidt 2022, arXiv:2207.09453.
    """

    def __init__(self, irreps: str) -> None:
        super().__init__()
        given = o3.Irreps(irreps)
        scalars = o3.Irreps([(mul, ir) for mul, ir in given if ir == o3.Irrep("0e")])
        gated = o3.Irreps([(mul, ir) for mul, ir in given if ir != o3.Irrep("0e")])
        gates = o3.Irreps([(gated.num_irreps, "0e")])
        self.irreps_out = (scalars + gated).simplify()
        self.irreps_in = (scalars + gates + gated).simplify()
        self._widths = [scalars.dim, gates.dim, gated.dim]
        dims = torch.tensor([ir.dim for mul, ir in gated for _ in range(mul)], dtype=torch.long)
        self.register_buffer("_spread", torch.arange(len(dims)).repeat_interleave(dims), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """``(N, irreps_in.dim)`` to ``(N, irreps_out.dim)``."""
        scalars, gates, gated = x.split(self._widths, -1)
        scalars = SILU_SCALE * silu(scalars)
        if not gated.size(-1):
            return scalars
        gates = (SIGMOID_SCALE * gates.sigmoid()).index_select(-1, self._spread)  # (N, gated)
        return torch.cat([scalars, gates * gated], -1)
