"""Coordinate noise: the one place where backbone atoms and CA positions are moved together."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["CA", "displace_backbone"]

CA = 1
"""Place of CA among the backbone atoms N, CA, C, O."""

Array = TypeVar("Array")  # NumPy arrays or tensors


def displace_backbone(pos: Array, backbone: Array, step: Array) -> tuple[Array, Array]:
    """Return CA positions and backbone atoms moved by the same step.

    Parameters
    ----------
    pos : ndarray or Tensor
        ``(N, 3)`` Å, CA.
    backbone, step : ndarray or Tensor
        ``(N, 4, 3)`` Å, atoms N, CA, C, O, and the displacement of each.

    Examples
    --------
    >>> import numpy as np
    >>> pos, backbone = displace_backbone(np.zeros((1, 3)), np.zeros((1, 4, 3)), np.ones((1, 4, 3)))
    >>> pos.tolist(), bool((backbone[:, CA] == pos).all())
    ([[1.0, 1.0, 1.0]], True)
    """
    return pos + step[:, CA], backbone + step
