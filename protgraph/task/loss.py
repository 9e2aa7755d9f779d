"""Losses over known labels: what is unknown (−1 or NaN) takes no part, and a batch without any known label gives 0."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

__all__ = ["binary_cross_entropy", "cross_entropy", "known", "squared_error"]

UNKNOWN = -1  # class number of an entry without a label


def known(y: Tensor) -> Tensor:
    """Which labels are known, bool of the shape of ``y``: not −1 among classes, not NaN among floats."""
    return ~y.isnan() if y.is_floating_point() else y != UNKNOWN


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean of ``-log softmax(logits)[y]`` over known entries.

    Parameters
    ----------
    logits : Tensor
        ``(N, C)`` float, unnormalised log-probabilities.
    y : Tensor
        ``(N,)`` int64 classes; −1 is unknown.

    Returns
    -------
    Tensor
        ``()``, nats.
    """
    total = functional.cross_entropy(logits, y, ignore_index=UNKNOWN, reduction="sum")
    return total / known(y).sum().clamp(min=1)


def binary_cross_entropy(logits: Tensor, y: Tensor, *, pos_weight: Tensor | float | None = None) -> Tensor:
    """Mean of ``-w y log σ(logits) - (1 - y) log(1 - σ(logits))`` over known entries.

    Parameters
    ----------
    logits : Tensor
        ``(N, C)`` float, log-odds.
    y : Tensor
        ``(N, C)`` float, 0 or 1; NaN is unknown.
    pos_weight : Tensor or float, optional
        w, one for all labels or ``(C,)``; None is 1.

    Returns
    -------
    Tensor
        ``()``, nats.
    """
    mask = known(y)
    if pos_weight is not None:
        pos_weight = logits.new_tensor(pos_weight) if isinstance(pos_weight, int | float) else pos_weight.to(logits)
    total = functional.binary_cross_entropy_with_logits(
        logits, y.nan_to_num(), weight=mask.to(logits.dtype), pos_weight=pos_weight, reduction="sum"
    )
    return total / mask.sum().clamp(min=1)


def squared_error(logits: Tensor, y: Tensor) -> Tensor:
    """Mean of ``(logits - y)²`` over known entries.

    Parameters
    ----------
    logits, y : Tensor
        ``(N, C)`` float, in the target's unit; NaN in ``y`` is unknown.

    Returns
    -------
    Tensor
        ``()``, in the square of the target's unit.
    """
    mask = known(y)
    error = (logits - y.nan_to_num()) * mask
    return error.square().sum() / mask.sum().clamp(min=1)
