"""Normalization of columns: by means and scales of the training split, or by those of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

__all__ = ["RowBatchNorm", "Standardize"]


class Standardize(nn.Module):
    """Compute ``(x − mean) / scale`` per column; the identity until :meth:`set_columns` is called.

    A layer that mixes raw features in a linear map has one as an attribute. Training sets its columns from the training
    split, and they are saved with the weights.

    ``widths``: number of columns of each field, in the order in which the fields are concatenated. ``columns``: columns
    of each field. ``mean``, ``scale``: ``(F,)`` buffers; None for the identity.

    Examples
    --------
    >>> standardize = Standardize({"sasa": 1})
    >>> standardize.set_columns(torch.tensor([50.0]), torch.tensor([25.0]))
    >>> standardize(torch.tensor([[100.0], [25.0]]))
    tensor([[ 2.],
            [-1.]])
    """

    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, widths: Mapping[str, int]) -> None:
        super().__init__()
        self.columns: dict[str, slice] = {}
        self.width = 0
        for name, width in widths.items():
            self.columns[name] = slice(self.width, self.width + width)
            self.width += width
        self.register_buffer("mean", None)
        self.register_buffer("scale", None)

    def set_columns(self, mean: Tensor, scale: Tensor) -> None:
        """Set mean and scale, ``(F,)``; 0 and 1 leave a column as it is."""
        self.mean, self.scale = mean.detach().clone(), scale.detach().clone()

    def standardized(self) -> dict[str, tuple[int, ...]]:
        """Return the numbers of the columns of each field that are not left as they are."""
        if self.mean is None or self.scale is None:
            return {}
        is_changed = ((self.mean != 0) | (self.scale != 1)).tolist()
        numbers: dict[str, tuple[int, ...]] = {}
        for name, columns in self.columns.items():
            changed = tuple(i for i, is_different in enumerate(is_changed[columns]) if is_different)
            if changed:
                numbers[name] = changed
        return numbers

    def forward(self, x: Tensor) -> Tensor:
        """Standardize ``(N, F)`` to the same shape."""
        if self.mean is None or self.scale is None:
            return x
        return (x - self.mean.to(x.dtype)) / self.scale.to(x.dtype)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        """Take the buffers of the state; without them, become the identity."""
        for name in ("mean", "scale"):
            old, saved = getattr(self, name), state_dict.get(prefix + name)
            if saved is not None and old is None:
                self.register_buffer(name, torch.empty_like(saved))
            elif saved is None:
                self.register_buffer(name, None)
        super()._load_from_state_dict(state_dict, prefix, *args)


class RowBatchNorm(nn.BatchNorm1d):
    """Batch normalization over the rows ``(N, C)`` of a batch; a single row is normalized by running statistics.

    ``torch.nn.BatchNorm1d`` raises for one row in training, since it has no variance.

    References
    ----------
    Ioffe & Szegedy 2015, arXiv:1502.03167.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``(M, C)`` to the same shape; in training, one row alone is normalized by running statistics."""
        if len(x) > 1 or not self.training:
            return super().forward(x)
        return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
