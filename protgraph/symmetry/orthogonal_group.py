"""Random elements of O(3) in float64: rotations and reflections under the Haar measure.

Not e3nn: ``o3.rand_matrix`` takes no seed and advances the global generator (e3nn 0.6.0, 2026-11-22).
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["random_reflections", "random_rotations"]


def random_rotations(count: int, *, seed: int = 0) -> Tensor:
    """Sample rotations R, uniform under the Haar measure of SO(3).

    Parameters
    ----------
    count : int
        Number of matrices.
    seed : int
        Seed; the global generator is not used.

    Returns
    -------
    Tensor
        ``(count, 3, 3)`` float64, orthogonal with determinant +1.

    Notes
    -----
    Normalized Gaussian quaternions are uniform on the 3-sphere, which covers SO(3) twice.

    References
    ----------
    Shoemake 1992, "Uniform random rotations", Graphics Gems III, pp. 124–132.

    Examples
    --------
    >>> r = random_rotations(1)[0]
    >>> torch.allclose(r @ r.T, torch.eye(3, dtype=torch.float64))
    True
    """
    generator = torch.Generator("cpu").manual_seed(seed)  # another default device has no effect
    q = torch.randn(count, 4, generator=generator, dtype=torch.float64, device="cpu")
    w, x, y, z = (q / q.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)  # (count, 3, 3)


def random_reflections(count: int, *, seed: int = 0) -> Tensor:
    """Sample improper rotations −R, uniform over the part of O(3) with determinant −1.

    Parameters
    ----------
    count : int
        Number of matrices.
    seed : int
        Seed; the global generator is not used.

    Returns
    -------
    Tensor
        ``(count, 3, 3)`` float64, orthogonal with determinant −1.
    """
    return -random_rotations(count, seed=seed)
