"""Graph convolutions of scalars: GCN (Kipf & Welling 2017), GIN (Xu et al. 2019), GraphSAGE (Hamilton et al. 2017)."""

# Not PyG's GCNConv: 7.9 times the time. Not its GINConv and SAGEConv: a row per edge (PyG 2.8.1, 2026-11-23).

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.mlp import activation
from protgraph.nn.module import GraphLayer
from protgraph.nn.standardize import RowBatchNorm

__all__ = ["GCN", "GIN", "SAGE"]

ENTRY_POINTS = {"protgraph.layers": {"gcn": "GCN", "gin": "GIN", "sage": "SAGE"}}


class GCN(GraphLayer):
    """Graph convolutional layer (Kipf & Welling 2017).

    ``h'_i = W Σ_{j ∈ N(i) ∪ {i}} c_ij h_j + b``, with ``d_i = Σ_{j ∈ N(i) ∪ {i}} w_ij``, edge weights ``w_ij`` (default
    1) and ``w_ii = 1``:

    * ``norm="symmetric"``: ``c_ij = w_ij / sqrt(d_i d_j)``, the renormalized propagation of the paper;
    * ``norm="mean"``: ``c_ij = w_ij / d_i``, the mean over a node and its neighbors.

    Parameters
    ----------
    dim : int
        Width of the output.
    norm : {"symmetric", "mean"}
        Normalization c.
    bias : bool
        Add b.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Optional: ``edge_weight`` ``(E, 1)``, nonnegative.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    The nonlinearity is not part of the layer (see ``residual``). Self loops are part of the formula; the edges contain
    none. W is applied before or after the sum, whichever is narrower.

    References
    ----------
    Kipf & Welling 2017, arXiv:1609.02907, eq. 2 and sec. 2.2. The mean: e.g. Hamilton 2020, "Graph Representation
    Learning", sec. 5.2.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_weight",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(nonnegative=("edge_weight",))

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        norm: Literal["symmetric", "mean"] = "symmetric",
        bias: bool = True,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        if "edge_weight" in fields and self.scalar_width("edge_weight") != 1:
            spec = fields["edge_weight"]
            raise WiringError(f"gcn reads one weight per edge; {spec.name!r} has {spec.dim}. Use layer 'edge_network'.")
        self.norm = norm
        self.linear_first = dim < width
        self.linear = nn.Linear(width, dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None
        nn.init.xavier_uniform_(self.linear.weight)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` by eq. 2, with self loops and symmetric normalization."""
        h, edges, weight = f["h"], f["edges"], f.get("edge_weight")
        w = None if weight is None else weight.flatten()
        degree = 1 + (edges.count.to(h.dtype) if w is None else edges.sum(w))  # d_i, (N,)
        if self.linear_first:
            h = linear(h, self.linear.weight)
        # Kipf & Welling eq. 2, D̂^-1/2 Â D̂^-1/2 h: both roots act on nodes, so no coefficient per edge is needed.
        factor = degree.rsqrt().unsqueeze(1) if self.norm == "symmetric" else degree.reciprocal().unsqueeze(1)
        h = factor * h if self.norm == "symmetric" else h
        h = factor * (edges.gather_sum(h, w) + h)
        if not self.linear_first:
            return {"h": linear(h, self.linear.weight, self.bias)}
        return {"h": h if self.bias is None else h + self.bias}


_LEAKY = Conformity(expected_failures={"no_leak": "batch normalization in training, as in the paper"})
_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": RowBatchNorm,
    "layer": nn.LayerNorm,
    "none": lambda _: nn.Identity(),
}


class GIN(GraphLayer):
    """Layer of the graph isomorphism network (Xu et al. 2019).

    ``h'_i = act(norm(W_2 act(norm(W_1 ((1 + ε) h_i + Σ_{j ∈ N(i)} h_j) + b_1)) + b_2))``.

    Parameters
    ----------
    dim : int
        Width of the hidden layer and of the output.
    act : str
        Activation function, after both linear maps.
    norm : {"none", "layer", "batch"}
        Normalization before it. "batch", that of the paper, is over the nodes of a batch: in training, the output for a
        protein depends on the others.
    learn_eps : bool
        Learn ε; it starts at 0.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``edges``. Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Xu et al. 2019, arXiv:1810.00826, eq. 4.1, and sec. 7 (two linear maps, batch normalization on each).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        act: str = "relu",
        norm: Literal["batch", "layer", "none"] = "none",
        learn_eps: bool = False,
    ) -> None:
        super().__init__(fields)
        make_norm = _NORMS[norm]
        if norm == "batch":
            self.conformity = _LEAKY
        self.eps = nn.Parameter(torch.zeros(())) if learn_eps else None
        width = self.scalar_width("h")
        self.mlp = nn.Sequential(
            *(nn.Linear(width, dim), make_norm(dim), activation(act)),
            *(nn.Linear(dim, dim), make_norm(dim), activation(act)),
        )
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: an MLP of the node plus the sum of its neighbors."""
        h, edges = f["h"], f["edges"]
        own = h if self.eps is None else (1 + self.eps) * h
        return {"h": self.mlp(own + edges.gather_sum(h))}


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
