"""Lengths, directions, radial basis functions and a cutoff of edge vectors; coincident nodes have finite gradients."""

# Not PyG's BesselBasisLayer, e3nn's soft_one_hot_linspace: NaN for coincident nodes (PyG 2.8.1, e3nn 0.6, 2026-11-22).

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["BesselBasis", "ExponentialBasis", "cosine_cutoff", "polar", "unit_or_zero"]


def polar(vec: Tensor) -> tuple[Tensor, Tensor]:
    """Split vectors into distance and direction.

    ``vec``: ``(E, 3)``, Å. Returns ``distance``: ``(E, 1)``, Å. ``direction``: ``(E, 3)``, unit vectors. A zero vector
    has direction 0 and gradient 0.
    """
    square = vec.square().sum(-1, keepdim=True)  # (E, 1)
    is_zero = square == 0
    # The square root of 0 has no finite gradient: 1 replaces 0, also in the division.
    length = square.masked_fill(is_zero, 1.0).sqrt()
    inverse = length.reciprocal().masked_fill(is_zero, 0.0)
    distance = length.masked_fill(is_zero, 0.0)
    return distance, vec * inverse


def unit_or_zero(v: Tensor) -> Tensor:
    """Return ``v / |v|`` along the last axis; 0, with gradient 0, where v is 0."""
    square = v.square().sum(-1, keepdim=True)
    is_zero = square == 0
    length = square.masked_fill(is_zero, 1.0).sqrt()
    return (v / length).masked_fill(is_zero, 0.0)


def cosine_cutoff(distance: Tensor, cutoff: float) -> Tensor:
    """Compute ``(cos(π d / c) + 1) / 2`` for d < c, else 0: 1 at distance 0, with a continuous derivative at c.

    ``distance``: ``(E, 1)``, Å. ``cutoff``: c, Å. Returns ``(E, 1)``.
    """
    angle = distance * (math.pi / cutoff)
    wave = 0.5 * (torch.cos(angle) + 1)
    return torch.where(distance < cutoff, wave, 0)


class BesselBasis(nn.Module):
    """Bessel basis ``sqrt(2 / c) sin(n π d / c) / d · u(d / c)`` for n = 1 … B, zero from the cutoff c on.

    ``u(q) = 1 - (p+1)(p+2)/2 q^p + p(p+2) q^(p+1) - p(p+1)/2 q^(p+2)``: its value and first two derivatives are zero at
    the cutoff. Written with sinc, the basis is finite at d = 0.

    ``size``: B. ``cutoff``: c, Å. ``envelope``: p, at least 2.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eqs. 7–8.
    """

    def __init__(self, size: int, cutoff: float, envelope: int = 5) -> None:
        super().__init__()
        self.size = size
        self.cutoff = float(cutoff)
        self.envelope = envelope

    def forward(self, distance: Tensor) -> Tensor:
        """Evaluate the basis: distances ``(E, 1)``, Å, to ``(E, B)``."""
        q = distance / self.cutoff
        n = torch.arange(1, self.size + 1, dtype=q.dtype, device=q.device)
        factor = math.sqrt(2 / self.cutoff) * (math.pi / self.cutoff)
        waves = factor * n * torch.sinc(n * q)  # (E, B)

        # Envelope u(q), with q^p by products: pow rounds an edge differently in small and in large tensors.
        p = self.envelope
        power = q
        for _ in range(p - 1):
            power = power * q
        constant = (p + 1) * (p + 2) / 2
        linear = p * (p + 2)
        quadratic = p * (p + 1) / 2
        fall = power * (constant - q * (linear - q * quadratic))
        envelope = (1 - fall).masked_fill(q >= 1, 0.0)
        return waves * envelope


class ExponentialBasis(nn.Module):
    """Gaussians of ``exp(-5 d / c)`` times :func:`cosine_cutoff`: ``u(d) exp(-β (exp(-5 d / c) - μ_k)²)``.

    ``size``: B, the number of centers μ_k, evenly spaced from exp(-c) to 1; ``β = (B / (2 - 2 exp(-c)))²``. ``cutoff``:
    c, Å.

    References
    ----------
    Unke & Meuwly 2019, arXiv:1902.08408, eq. 7.
    """

    def __init__(self, size: int, cutoff: float) -> None:
        super().__init__()
        self.size = size
        self.cutoff = float(cutoff)

    def forward(self, distance: Tensor) -> Tensor:
        """Evaluate the basis: distances ``(E, 1)``, Å, to ``(E, B)``."""
        last = math.exp(-self.cutoff)
        centers = torch.linspace(last, 1, self.size, dtype=distance.dtype, device=distance.device)
        beta = (2 / self.size * (1 - last)) ** -2
        decay = torch.exp(-5 / self.cutoff * distance)  # (E, 1)
        gaussians = torch.exp(-beta * (decay - centers).square())  # (E, B)
        return cosine_cutoff(distance, self.cutoff) * gaussians
