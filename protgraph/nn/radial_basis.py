"""Distances, directions and radial basis functions of edge vectors, with finite gradients for coincident nodes.

Not PyG's ``BesselBasisLayer`` (PyG 2.8.1) nor e3nn's ``soft_one_hot_linspace(basis="bessel")`` (e3nn 0.6.0): both are
NaN for coincident nodes (2026-11-22).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["BesselBasis", "polar"]


def polar(vec: Tensor) -> tuple[Tensor, Tensor]:
    """Split vectors into distance and direction.

    Parameters
    ----------
    vec : Tensor
        ``(E, 3)``, Å.

    Returns
    -------
    distance : Tensor
        ``(E, 1)``, Å.
    direction : Tensor
        ``(E, 3)``, unit vectors. A zero vector has direction 0 and gradient 0.
    """
    square = vec.square().sum(-1, keepdim=True)  # (E, 1)
    apart = square > 0
    safe = torch.where(apart, square, torch.ones_like(square)).sqrt()
    nothing = torch.zeros_like(safe)
    return torch.where(apart, safe, nothing), vec * torch.where(apart, safe.reciprocal(), nothing)


class BesselBasis(nn.Module):
    """Bessel basis ``sqrt(2 / c) sin(n π d / c) / d · u(d / c)`` for n = 1 … B, zero from the cutoff c on.

    Parameters
    ----------
    size : int
        B.
    cutoff : float
        c, Å.

    Notes
    -----
    u is the polynomial envelope with p = 5: its value and first two derivatives are zero at the cutoff. Written with
    sinc, the basis is finite at d = 0.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eqs. 7–8.
    """

    def __init__(self, size: int, cutoff: float) -> None:
        super().__init__()
        self.size, self.cutoff = size, float(cutoff)

    def forward(self, distance: Tensor) -> Tensor:
        """Evaluate the basis: distances ``(E, 1)``, Å, to ``(E, B)``."""
        q = distance / self.cutoff
        n = torch.arange(1, self.size + 1, dtype=distance.dtype, device=distance.device)
        waves = math.sqrt(2 / self.cutoff) * (n * math.pi / self.cutoff) * torch.sinc(n * q)  # (E, B)
        envelope = 1 - 21 * q**5 + 35 * q**6 - 15 * q**7
        return waves * torch.where(q < 1, envelope, torch.zeros_like(envelope))
