"""Gated nonlinearity of equivariant networks.

Not ``e3nn.nn.Gate``: the same function took 1.8× the time forward and backward (e3nn 0.6.0, one thread, 8,192 rows,
2026-11-22).
"""

from __future__ import annotations

import torch
from e3nn import o3
from torch import Tensor, nn
from torch.nn.functional import silu

__all__ = ["Gate"]

# Factors that give silu(z) and sigmoid(z) unit second moment for z ~ N(0, 1), as e3nn.math.normalize2mom estimates them
# from a million samples (quadrature: 1.67653 and 1.84623). e3nn's values are used so that weights are interchangeable.
SILU_SCALE = 1.6791767923989418
SIGMOID_SCALE = 1.8467055342154763


class Gate(nn.Module):
    """Gate activation: ``s ↦ c silu(s)`` for even scalars, ``t ↦ c' sigmoid(g) t`` for every other channel t.

    Each channel t that is not an even scalar has its own gate g, an extra even scalar of the input.

    Parameters
    ----------
    irreps : str
        Output irreps, even scalars first, e.g. ``"64x0e+16x1o"``.

    Attributes
    ----------
    irreps_in : e3nn.o3.Irreps
        Input irreps: scalars, gates, gated channels, e.g. ``"80x0e+16x1o"``.
    irreps_out : e3nn.o3.Irreps
        Output irreps.

    Notes
    -----
    Equal to ``e3nn.nn.Gate`` with these activations.

    References
    ----------
    Weiler et al. 2018, arXiv:1807.02547, section 4.3; Geiger & Smidt 2022, arXiv:2207.09453.
    """

    def __init__(self, irreps: str) -> None:
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
