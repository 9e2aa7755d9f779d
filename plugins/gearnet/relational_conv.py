"""Relational convolution shared by nodes (``gearnet``) and edges (``gearnet_edge``)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph.nn import RowBatchNorm, activation

__all__ = ["RelationalConv"]


class RelationalConv(nn.Module):
    """Convolution ``σ(BN( Σ_r W_r Σ_j w_ijr x_j + W_0 x_i + b ))`` with the parameter names of TorchDrug.

    Parameters
    ----------
    width, dim : int
        Widths of input and output.
    relations : int
        Number of relations R.
    act : str
        Activation σ.
    norm : {"none", "batch"}
        "batch" applies BN.
    edge_width : int
        Width D of features of edges that are added to x_j, ``L e_ij + c``; 0: none.
    """

    def __init__(
        self,
        width: int,
        dim: int,
        relations: int,
        *,
        act: str = "relu",
        norm: Literal["none", "batch"] = "none",
        edge_width: int = 0,
    ) -> None:
        super().__init__()
        self.relations = relations
        self.edge_linear = nn.Linear(edge_width, width) if edge_width else None
        self.self_loop = nn.Linear(width, dim)
        self.linear = nn.Linear(relations * width, dim)  # [W_1 … W_R]
        self.batch_norm = RowBatchNorm(dim) if norm == "batch" else nn.Identity()
        self.act = activation(act)

    def forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        """Compute the output ``(N, dim)`` from ``x (N, C)`` and the sum over relations ``mixed (N, dim)``."""
        return self.act(self.batch_norm(mixed + self.linear.bias + self.self_loop(x)))

    def table(self, x: Tensor) -> Tensor:
        """Compute ``W_r x_j`` of all nodes and relations, ``(N, C)`` to ``(N R, dim)``."""
        each = self.linear.weight.unflatten(1, (self.relations, -1)).transpose(0, 1).flatten(0, 1)  # (R dim, C)
        return linear(x, each).view(len(x) * self.relations, -1)
