"""What sums of messages do to a node in the networks after ProteinMPNN: :class:`NodeUpdate`."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["NodeUpdate"]


class NodeUpdate(nn.Module):
    """``h ← norm₁(h + W₃ Σ_j m_ij / scale)``, ``h ← norm₂(h + W_out g(W_in h))``: what messages do to a node.

    ``Σ_j (W₃ m_ij + b₃) = W₃ (Σ_j m_ij) + K b₃``: W₃ works on nodes. g is the GELU by erf.

    Parameters
    ----------
    dim : int
        Width of h and m; the hidden layer has four times that.
    scale : float
        What sums are divided by, however many neighbors there are.
    dropout : float
        Probability, of both updates.

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
        """``(…, dim)`` from h, sums of messages ``(…, dim)`` and how many each was of ``(…, 1)``."""
        step = self.dropout((total @ self.out.weight.t() + count * self.out.bias) / self.scale)
        h = self.norms[0](step if h is None else h + step)
        return self.norms[1](h + self.dropout(self.feed_forward(h)))
