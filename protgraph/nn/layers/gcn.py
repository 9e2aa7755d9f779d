"""Graph convolution: ``gcn``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.mlp import check_choice
from protgraph.nn.module import GraphLayer
from protgraph.ops import Edges

__all__ = ["GCN"]
ENTRY_POINTS = {"protgraph.layers": {"gcn": "GCN"}}


class GCN(GraphLayer):
    """``h'_i = W Σ_{j ∈ N(i) ∪ {i}} c_ij h_j + b``, with weights ``w_ij`` (1 unless wired), ``w_ii = 1``.

    With ``d_i = Σ_{j ∈ N(i) ∪ {i}} w_ij``:

    * ``norm="symmetric"``: ``c_ij = w_ij / sqrt(d_i d_j)``, Kipf & Welling's renormalized propagation;
    * ``norm="mean"``: ``c_ij = w_ij / d_i``, the mean of a node and its neighbors.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the result.
    norm : {"symmetric", "mean"}
        Which c.
    bias : bool
        Whether to add b.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, edges; optionally edge_weight ``(E, 1)``, not negative.
    Writes: h ``(N, dim)``, ``dim x 0e``.

    The nonlinearity is not part of the layer (see ``residual``). Self loops are added in the formula, not to the
    edges, which hold none. ``W`` acts before or after the sum, whichever is narrower.

    References
    ----------
    Kipf & Welling 2017, arXiv:1609.02907, eq. 2 and sec. 2.2; the mean is the rule that teaching texts give, such as
    Hamilton 2020, "Graph Representation Learning", sec. 5.2.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_weight",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(nonnegative=("edge_weight",))

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, dim: int = 64, norm: str = "symmetric", bias: bool = True
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        if "edge_weight" in fields and self.scalar_width("edge_weight") != 1:
            spec = fields["edge_weight"]
            raise WiringError(f"gcn takes one weight an edge; {spec.name!r} has {spec.dim} (see layer 'edge_network')")
        self.norm = check_choice("norm", norm, ("symmetric", "mean"))
        self.linear_first = dim < width
        self.linear = nn.Linear(width, dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None
        nn.init.xavier_uniform_(self.linear.weight)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h, weight = f["h"], f.get("edge_weight")
        if self.linear_first:
            h = self.linear(h)
        h = self._propagate(h, f["edges"], weight)
        if not self.linear_first:
            h = self.linear(h)
        return {"h": h if self.bias is None else h + self.bias}

    def _propagate(self, h: Tensor, edges: Edges, weight: Tensor | None) -> Tensor:
        w = None if weight is None else weight.flatten()
        degree = 1 + (edges.count.to(h.dtype) if w is None else edges.sum(w))  # d_i, (N,)
        if self.norm == "mean":
            return (edges.gather_sum(h, w) + h) / degree.unsqueeze(1)
        # Kipf & Welling eq. 2, D̂^-1/2 Â D̂^-1/2 h: both roots act on nodes, so no edge carries a coefficient.
        root = degree.rsqrt().unsqueeze(1)
        h = root * h
        return root * (edges.gather_sum(h, w) + h)
