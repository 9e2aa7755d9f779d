"""Gaussian radial bases of distances, for many distances a row: :func:`gaussians`."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["SOFTEN", "gaussians"]

#: Added to squared distances, Å²: the derivative of the distance of an atom from itself stays finite.
SOFTEN = 1e-6
# exp(-60) is nothing to either floating type; what lies below 1e-38 has no float32 of full precision and costs products
# on CPU a hundred times as much.
_FAINT = 60.0


def gaussians(distance: Tensor, bins: int, low: float, high: float) -> Tensor:
    """``exp(-((d - μ_k) / σ)²)``, μ_k evenly spaced from low to high, both included; ``σ = (high - low) / bins``.

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
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement; σ as in their program, without the 1/2 of a normal
    density.
    """
    width = (high - low) / bins
    center = torch.linspace(low, high, bins, dtype=distance.dtype, device=distance.device) / width
    scaled = (distance / width)[..., None] - center
    if scaled.requires_grad:
        return torch.exp(-scaled.square().clamp(max=_FAINT))
    return scaled.square_().clamp_(max=_FAINT).neg_().exp_()  # many numbers a distance: no new memory for each pass
