"""The measure of agreement between two tensors that cannot be passed by saying nothing."""

from __future__ import annotations

import torch
from e3nn import o3
from torch import Tensor

from protgraph.errors import ProtgraphError

__all__ = ["ComparisonError", "relative_error"]


class ComparisonError(ProtgraphError, ArithmeticError):
    """Two tensors cannot be compared: shapes differ, values are not finite, or there is nothing but zeros."""


def relative_error(got: Tensor, want: Tensor, *, irreps: str | None = None) -> float:
    """``max |got − want| / max |want|``; with irreps the worst over their blocks.

    A function that returns NaN or zeros agrees with its own rotation, so such values are refused, not passed.

    Parameters
    ----------
    got, want : Tensor
        Of one shape, floating.
    irreps : str, optional
        e3nn irreps of the flattened trailing dimensions: each block (``16x1o``) is held to its own scale, so
        that large scalars hide no error of small vectors.

    Returns
    -------
    float
        Dimensionless.

    Raises
    ------
    ComparisonError
        Where shapes differ, a value is NaN or infinite, or ``want`` (or a block of it) is empty or all zero.

    Examples
    --------
    >>> relative_error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    0.5
    """
    if got.shape != want.shape:
        raise ComparisonError(f"shapes {tuple(got.shape)} and {tuple(want.shape)} cannot be compared")
    got, want = got.detach(), want.detach()
    blocks = [slice(None)] if irreps is None else [s for s in o3.Irreps(irreps).slices() if s.start < s.stop]
    if irreps is not None:
        got, want = got.flatten(1), want.flatten(1)
    return max(_block_error(got[..., s], want[..., s]) for s in blocks)


def _block_error(got: Tensor, want: Tensor) -> float:
    if not (torch.isfinite(got).all() and torch.isfinite(want).all()):
        raise ComparisonError("a value is NaN or infinite: nothing can be said about symmetry")
    scale = want.abs().max() if want.numel() else want.new_zeros(())
    if scale == 0:
        raise ComparisonError("all values are zero (or there are none): zero agrees with everything")
    return float((got - want).abs().max() / scale)
