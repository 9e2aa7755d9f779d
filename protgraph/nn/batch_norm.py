"""Batch normalization that is defined for a batch of a single row."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import batch_norm

__all__ = ["RowBatchNorm"]


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
