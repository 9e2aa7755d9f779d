"""Relative error of two tensors that rejects NaN and all-zero values."""

from __future__ import annotations

import torch
from e3nn import o3
from torch import Tensor

from protgraph.errors import ProtgraphError

__all__ = ["ComparisonError", "relative_error"]


class ComparisonError(ProtgraphError, ArithmeticError):
    """Two tensors cannot be compared: shapes differ, values are not finite, or all are zero."""


def relative_error(actual: Tensor, expected: Tensor, *, irreps: str | None = None) -> float:
    """Return ``max |actual − expected| / max |expected|``; with irreps, the largest over their blocks.

    NaN and zeros are invariant under any rotation, so they raise instead of passing a symmetry test.

    Parameters
    ----------
    actual, expected : Tensor
        Floating-point tensors of any shape, the same for both.
    irreps : str, optional
        e3nn irreps of the flattened trailing dimensions. Each block, e.g. ``16x1o``, has its own scale, so that large
        scalars do not hide errors of small vectors.

    Returns
    -------
    float
        Dimensionless.

    Raises
    ------
    ComparisonError
        Shapes differ, a value is NaN or infinite, or ``expected`` (or a block of it) is empty or zero.

    Examples
    --------
    >>> relative_error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    0.5
    """
    if actual.shape != expected.shape:
        raise ComparisonError(f"different shapes: {tuple(actual.shape)} and {tuple(expected.shape)}")
    actual, expected = actual.detach(), expected.detach()
    blocks = [slice(None)] if irreps is None else [s for s in o3.Irreps(irreps).slices() if s.start < s.stop]
    if irreps is not None:
        actual, expected = actual.flatten(1), expected.flatten(1)
    return max(_block_error(actual[..., s], expected[..., s]) for s in blocks)


def _block_error(actual: Tensor, expected: Tensor) -> float:
    if not (torch.isfinite(actual).all() and torch.isfinite(expected).all()):
        raise ComparisonError("a value is NaN or infinite")
    scale = expected.abs().max() if expected.numel() else expected.new_zeros(())
    if scale == 0:
        raise ComparisonError("all values are zero, or there are none; zeros are invariant under every rotation")
    return float((actual - expected).abs().max() / scale)
