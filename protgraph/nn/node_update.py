"""Node update of ProteinMPNN and its relatives: residual sum of messages, then a feed-forward network."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["NodeUpdate"]


class NodeUpdate(nn.Module):
    """Node update from a sum of messages, as in ProteinMPNN.

    ``h ← norm₁(h + W₃ Σ_j m_ij / scale)``, ``h ← norm₂(h + W_out g(W_in h))``, with g the exact GELU.

    ``Σ_j (W₃ m_ij + b₃) = W₃ (Σ_j m_ij) + K b₃``, so W₃ acts on nodes.

    Parameters
    ----------
    dim : int
        Width of h and m; the hidden layer is four times as wide.
    scale : float
        Constant divisor of the sums, independent of the number of neighbors.
    dropout : float
        Dropout probability of both updates.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement, algorithms 2 and 3.
    """

    def __init__(self, dim: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.scale = scale
        self.out = nn.Linear(dim, dim)
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.feed_forward = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor | None, total: Tensor, count: Tensor) -> Tensor:
        """Compute the new h.

        Parameters
        ----------
        h : Tensor or None
            ``(…, dim)``; None counts as 0.
        total : Tensor
            ``(…, dim)`` sums of messages.
        count : Tensor
            ``(…, 1)``, the number of messages in each sum.

        Returns
        -------
        Tensor
            ``(…, dim)``.
        """
        step = self.dropout((total @ self.out.weight.t() + count * self.out.bias) / self.scale)
        h = self.norms[0](step if h is None else h + step)
        return self.norms[1](h + self.dropout(self.feed_forward(h)))
