"""Relational convolution over typed edges (``gearnet``) and over pairs of adjacent edges (``gearnet_edge``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from protgraph_plugins.gearnet.line_graph import angle_bin_sum, angle_bins
from protgraph_plugins.gearnet.relational_conv import RelationalConv
from torch import Tensor, nn
from torch.nn.functional import linear

from protgraph import Edges, FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError
from protgraph.nn import RowBatchNorm

__all__ = ["GearNet", "GearNetEdge"]
ENTRY_POINTS = {"protgraph.layers": {"gearnet": "GearNet", "gearnet_edge": "GearNetEdge"}}

_LEAKY = Conformity(expected_failures={"no_leak": "batch normalization in training, as in the reference program"})


class GearNet(GraphLayer):
    """Relational convolution over typed edges; with edge_h (e), the second term too.

    ``h'_i = BN( σ(Σ_r W_r Σ_j w_ijr (h_j + L a_ij + c) + W_0 h_i + b) + σ(Σ_r W_r Σ_j w_ijr e_ij + b) + h_i )``, w =
    edge_kind, a = edge_attr. Both terms share W and b. BN and ``+ h_i`` are optional.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the output.
    act : str
        Activation σ.
    norm : {"none", "inside", "batch"}
        "batch" normalizes over the nodes of a batch, inside the first σ and at the end; "inside" only there, as one
        convolution of TorchDrug.
    shortcut : bool
        Add ``h_i``; needs h of width dim.
    reduce : {"sum", "mean"}
        "mean" divides the sum of each relation by its total weight, as in R-GCN.

    Notes
    -----
    Reads: h ``(N, C)`` scalars, edges, edge_kind ``(E, R)``, the weight of an edge in each relation; optionally edge_h
    ``(E, C)`` and edge_attr ``(E, D)`` scalars. Writes: h ``(N, dim)``, ``dim x 0e``.

    The self relation of the paper is part of W_0, since both are linear maps of h_i. ``W_r h_j`` is computed on nodes.
    In training, "batch" couples the proteins of a batch, as in the reference program.

    References
    ----------
    Zhang et al. 2022, arXiv:2203.06125, eqs. 1–3; weights of TorchDrug load through
    :func:`protgraph_plugins.gearnet.reference.layers_from_torchdrug`.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_kind")
    optional: ClassVar[tuple[str, ...]] = ("edge_h", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        act: str = "relu",
        norm: Literal["none", "inside", "batch"] = "none",
        shortcut: bool = False,
        reduce: Literal["sum", "mean"] = "sum",
    ) -> None:
        super().__init__(fields)
        width, edge = self.scalar_width("h"), self.scalar_width("edge_h") if "edge_h" in fields else None
        if edge not in (None, width) or (shortcut and width != dim):
            raise WiringError(
                f"widths of gearnet do not match: h {width}, edge_h {edge}, output {dim}. h and edge_h need the same "
                "width, and with shortcut=True also h and the output."
            )
        self.shortcut, self.reduce = shortcut, reduce
        if norm != "none":
            self.conformity = _LEAKY
        self.conv = RelationalConv(
            width,
            dim,
            self.scalar_width("edge_kind"),
            act=act,
            norm="none" if norm == "none" else "batch",
            edge_width=self.scalar_width("edge_attr"),
        )
        self.norm = RowBatchNorm(dim) if norm == "batch" else nn.Identity()
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` by eq. 1 from the neighbors of each relation, and from ``edge_h`` if it is read."""
        h, edges, kind = f["h"], f["edges"], f["edge_kind"]
        relations = edges.cached("relations", kind, lambda: _relations(edges, kind))
        n, r = edges.num_nodes, kind.size(1)
        weight, slot = relations.weight, relations.slot
        if self.reduce == "mean":
            total = weight.new_zeros(n * r).index_add(0, slot, weight).index_select(0, slot)
            weight = weight / total.masked_fill(total == 0, 1.0)
        mixed = relations.pairs.gather_sum(self.conv.table(h), weight)
        if self.conv.edge_linear is not None:
            # Σ w (L a + c) = [L, c] Σ w [a, 1]: L is applied to nodes.
            affine = torch.cat([self.conv.edge_linear.weight, self.conv.edge_linear.bias[:, None]], 1)
            features = torch.cat([f["edge_attr"], torch.ones_like(kind[:, :1])], 1)
            added = linear(_slot_sums(edges, kind, features, weight), affine)  # (N R, C)
            mixed = mixed + linear(added.view(n, -1), self.conv.linear.weight)
        out = self.conv(h, mixed)  # eq. 1
        if self.shortcut:
            out = out + h
        if "edge_h" in f:
            summed = _slot_sums(edges, kind, f["edge_h"], weight).view(n, -1)  # (N, R C)
            out = out + self.conv.act(self.conv.linear(summed))  # eq. 3
        return {"h": self.norm(out)}


class GearNetEdge(GraphLayer):
    """Convolution over the line graph: each edge j → i receives messages from the edges k → j.

    ``e'_ij = σ(BN( Σ_b W_b Σ_k e_jk [∠(x_i − x_j, x_k − x_j) in bin b] + W_0 e_ij + c ))``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the output; a ``gearnet`` layer that reads it requires the width of its nodes.
    bins : int
        Relations, equal parts of 0 … π; the angle is 0 for coincident nodes.
    act : str
        Activation σ.
    norm : {"none", "batch"}
        "batch" normalizes over the edges of a batch.

    Notes
    -----
    Reads: edge_h ``(E, C)`` scalars, edge_vec ``(E, 3)`` Å, edges. Writes: edge_h ``(E, dim)``, ``dim x 0e``.

    All edges k → j send to j → i, also k = i: Σ_j in(j) out(j) pairs, about 15 times the number of edges. The sums of
    all bins are one matrix product per edge, over the incoming edges of its source.

    References
    ----------
    Zhang et al. 2022, arXiv:2203.06125, eq. 2, after the directional messages of DimeNet.
    """

    reads: ClassVar[tuple[str, ...]] = ("edge_h", "edge_vec", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        bins: int = 8,
        act: str = "relu",
        norm: Literal["none", "batch"] = "none",
    ) -> None:
        super().__init__(fields)
        self.bins = bins
        if norm == "batch":
            self.conformity = _LEAKY
        self.conv = RelationalConv(self.scalar_width("edge_h"), dim, bins, act=act, norm=norm)
        self.declare(edge_h=FieldSpec("edge_h", "edge", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``edge_h (E, dim)`` by eq. 2 from the incoming edges of each edge's source, by angle."""
        x, edges, vec = f["edge_h"], f["edges"], f["edge_vec"]
        key = f"angles in {self.bins} bins"
        angles = edges.cached(key, vec, lambda: angle_bins(edges, vec, self.bins))  # (E, K, B)
        return {"edge_h": self.conv(x, angle_bin_sum(edges, x, angles, self.conv.linear.weight))}  # eq. 2


class _Relations(NamedTuple):
    """Entries of the relations of edges ``(E, R)``: M pairs of an edge and a relation."""

    edge: Tensor  # (M,)
    slot: Tensor  # (M,), target * R + relation
    weight: Tensor  # (M,)
    pairs: Edges  # from source * R + relation to the target


def _relations(edges: Edges, kind: Tensor) -> _Relations:
    edge, relation, weight = _entries(kind)
    source, target = edges.index[:, edge]
    n, r = edges.num_nodes, kind.size(1)
    pairs = Edges(torch.stack([source * r + relation, target]), n, num_sources=n * r)
    return _Relations(edge, target * r + relation, weight, pairs)


def _slot_sums(edges: Edges, kind: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Sum ``(E, C)`` over the edges of each target and relation, with a weight per entry of kind, to ``(N R, C)``."""

    def slots() -> tuple[Tensor, Edges]:
        relations = edges.cached("relations", kind, lambda: _relations(edges, kind))
        order = torch.argsort(relations.slot, stable=True)
        index = torch.stack([relations.edge, relations.slot])[:, order]
        return order, Edges(index, edges.num_nodes * kind.size(1), num_sources=edges.num_edges)

    order, of_slots = edges.cached("slots of relations", kind, slots)
    return of_slots.gather_sum(x, weight[order])


def _entries(kind: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return edge, relation and weight of the entries of ``(E, R)``, row-major; on the CPU only of nonzero ones."""
    if kind.device.type != "cpu":  # finding nonzero entries would synchronize with the device
        every = torch.arange(kind.numel(), device=kind.device)
        return every // kind.size(1), every % kind.size(1), kind.flatten()
    edge, relation = kind.nonzero(as_tuple=True)
    return edge, relation, kind[edge, relation]
