"""Layer of GraphSAGE (Hamilton et al. 2017).

Not PyG's ``SAGEConv``: its mean makes a row per edge (PyG 2.8.1, 2026-11-23). Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.mlp import activation
from protgraph.nn.module import GraphLayer

__all__ = ["SAGE"]
ENTRY_POINTS = {"protgraph.layers": {"sage": "SAGE"}}


class SAGE(GraphLayer):
    """Layer of GraphSAGE (Hamilton et al. 2017): ``h'_i = act(W_1 h_i + W_2 aggregate_{j ∈ N(i)} h_j + b)``.

    Parameters
    ----------
    dim : int
        Width of the output.
    aggregate : {"mean", "sum", "max"}
        Aggregation of the neighbors, per channel; 0 without neighbors.
    act : str
        Activation function.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    All neighbors are used, without sampling. "max" is the maximum of ``h_j``; the pooling aggregator of the paper has a
    dense layer before it. Outputs are not normalized to length 1.

    References
    ----------
    Hamilton, Ying & Leskovec 2017, arXiv:1706.02216, algorithm 1 and sec. 3.3.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        aggregate: Literal["mean", "sum", "max"] = "mean",
        act: str = "relu",
    ) -> None:
        super().__init__(fields)
        self.aggregate = aggregate
        width = self.scalar_width("h")
        self.own, self.neighbors = nn.Linear(width, dim, bias=False), nn.Linear(width, dim)
        self.act = activation(act)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` from each node and the mean, sum or maximum of its neighbors."""
        h, edges, weight = f["h"], f["edges"], self.neighbors.weight
        if self.aggregate == "max":
            message = linear(edges.max(edges.source(h)), weight)
        else:  # W_2 and the sum commute: the narrower one is summed
            is_narrower = weight.size(0) < weight.size(1)
            message = edges.gather_sum(linear(h, weight) if is_narrower else h)
            if self.aggregate == "mean":
                message = message / edges.count.clamp(min=1).to(h.dtype).unsqueeze(1)
            message = message if is_narrower else linear(message, weight)
        return {"h": self.act(self.own(h) + message + self.neighbors.bias)}
