"""Gaussian radial basis for tensors with many distances per row."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["SOFTEN", "gaussians"]

#: Added to squared distances, Å², for a finite derivative of the distance of an atom to itself.
SOFTEN = 1e-6
# exp(-60) is negligible in float32 and float64; values below 1e-38 are denormal in float32, and products with them
# take a hundred times as long on CPUs.
_FAINT = 60.0


def gaussians(distance: Tensor, bins: int, low: float, high: float) -> Tensor:
    """Compute ``exp(-((d - μ_k) / σ)²)``, μ_k evenly spaced from low to high; ``σ = (high - low) / bins``.

    Parameters
    ----------
    distance : Tensor
        ``(…)``, Å.
    bins : int
        Number of centers, 2 or more.
    low, high : float
        First and last center, Å.

    Returns
    -------
    Tensor
        ``(…, bins)``, dimensionless.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement; σ as in the published program, without the factor 1/2
    of a normal density.
    """
    width = (high - low) / bins
    center = torch.linspace(low, high, bins, dtype=distance.dtype, device=distance.device) / width
    scaled = (distance / width)[..., None] - center
    if scaled.requires_grad:
        return torch.exp(-scaled.square().clamp(max=_FAINT))
    return scaled.square_().clamp_(max=_FAINT).neg_().exp_()  # in place: the tensor has many values per distance
