"""Basis functions of DimeNet: spherical Bessel functions of the distance times spherical harmonics of the angle.

Not PyG's ``SphericalBasisLayer``: it evaluates one expression of sympy per function, keeps all of them for each pair of
edges, and is infinite at distance 0 (PyG 2.8.1, 2026-11-27).
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import spherical_jn
from torch import Tensor, nn

__all__ = ["SphericalBasis", "spherical_bessel_zeros"]

# Smallest q = d / c: the basis has a factor 1 / q, and the recurrence of j_l loses all digits close to 0.
SMALLEST = 0.05


class SphericalBasis(nn.Module):
    """Basis ``s_ln j_l(z_ln q) u(q) / q · Y_l(α)`` with ``q = d / c`` for degrees l < L and n = 1 … R.

    ``z_ln`` is the n-th zero of ``j_l``, ``s_ln = sqrt(2) / |j_(l+1)(z_ln)|``,
    ``u(q) = 1 - 28 q⁶ + 48 q⁷ - 21 q⁸`` for q < 1, else 0, and ``Y_l(α) = sqrt((2 l + 1) / 4π) P_l(cos α)``.

    Parameters
    ----------
    degrees : int
        L, at least 1.
    radial : int
        R.

    References
    ----------
    Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eqs. 6 and 8, p = 6; the factor 1 / q is of the authors' code.
    """

    zeros: Tensor
    scale: Tensor

    def __init__(self, degrees: int, radial: int) -> None:
        super().__init__()
        zeros = spherical_bessel_zeros(degrees, radial)
        following = [spherical_jn(degree + 1, zeros[degree]) for degree in range(degrees)]
        self.degrees = degrees
        self.register_buffer("zeros", torch.from_numpy(zeros), persistent=False)  # (L, R) float64
        scale = math.sqrt(2) / np.abs(np.stack(following))
        self.register_buffer("scale", torch.from_numpy(scale), persistent=False)  # (L, R) float64

    def of_distance(self, q: Tensor) -> Tensor:
        """Evaluate the radial part of distances divided by the cutoff, ``(E, 1)`` to ``(E, L, R)``."""
        q64 = q.double().clamp(min=SMALLEST).unsqueeze(2)  # (E, 1, 1)
        x = q64 * self.zeros.double()  # (E, L, R)

        # j_(l+1)(x) = (2 l + 1) / x · j_l(x) - j_(l-1)(x), from j_0 = sin x / x and j_(-1) = cos x / x.
        before, bessel = x.cos() / x, x.sin() / x
        of_degree = []
        for degree in range(self.degrees):
            of_degree.append(bessel[:, degree])
            before, bessel = bessel, (2 * degree + 1) / x * bessel - before
        envelope = 1 - q64**6 * (28 - q64 * (48 - q64 * 21))
        envelope = torch.where(q64 < 1, envelope / q64, 0)
        return (self.scale * torch.stack(of_degree, 1) * envelope).to(q.dtype)

    def of_cosine(self, cosine: Tensor) -> Tensor:
        """Evaluate ``Y_l`` for cosines of angles, ``(T, 1)`` to ``(T, L)``."""
        before, legendre = torch.zeros_like(cosine), torch.ones_like(cosine)
        of_degree = []
        for degree in range(self.degrees):
            of_degree.append(math.sqrt((2 * degree + 1) / (4 * math.pi)) * legendre)
            following = ((2 * degree + 1) * cosine * legendre - degree * before) / (degree + 1)
            before, legendre = legendre, following
        return torch.cat(of_degree, 1)


def spherical_bessel_zeros(degrees: int, radial: int) -> np.ndarray:
    """Compute the first ``radial`` positive zeros of ``j_l`` for each l < ``degrees``, ``(degrees, radial)`` float64.

    Each zero of ``j_l`` is between two zeros of ``j_(l-1)``, and those of ``j_0`` are multiples of π.
    """
    zeros = np.pi * np.arange(1, radial + degrees)  # of j_0
    rows = [zeros[:radial]]
    for degree in range(1, degrees):
        bessel = partial(spherical_jn, degree)
        zeros = np.array([brentq(bessel, low, high, xtol=1e-14) for low, high in pairwise(zeros)])
        rows.append(zeros[:radial])
    return np.stack(rows)
