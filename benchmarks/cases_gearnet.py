"""GearNet layers of ``python -m benchmarks layers``, with sparse products of adjacency and features as in TorchDrug."""

from __future__ import annotations

import torch
from protgraph_plugins.gearnet.layers import GearNet, GearNetEdge
from protgraph_plugins.gearnet.line_graph import angle_bins
from protgraph_plugins.gearnet.relational_conv import RelationalConv
from torch import Tensor, nn

from benchmarks.layer_case import LayerInputs, SpeedCase
from protgraph import Edges, FieldSpec, field

__all__ = ["CASES", "SparseConv"]

KINDS = 6  # of edges, as the paper's network has
BINS = 8  # of angles
EDGE_WIDTH = 16  # channels of an edge, which follows 30 others


class SparseConv(nn.Module):
    """``σ( W [A_1 x, …, A_R x] + W_0 x + b )`` with one sparse matrix for the neighbors of all relations."""

    def __init__(self, ours: RelationalConv) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, x: Tensor, source: Tensor, target: Tensor, relation: Tensor, weight: Tensor) -> Tensor:
        rows = len(x) * self.ours.relations
        entries = torch.stack([target * self.ours.relations + relation, source])
        adjacency = torch.sparse_coo_tensor(entries, weight, (rows, len(x)), check_invariants=False)
        summed = torch.sparse.mm(adjacency, x).view(len(x), -1)  # (N, R C)
        return self.ours.act(self.ours.linear(summed) + self.ours.self_loop(x))


def _kinds(edges: Edges) -> Tensor:
    """Return a random kind of each edge, one-hot ``(E, R)``."""
    kind = torch.randint(KINDS, (edges.num_edges,), device=edges.device)
    return torch.nn.functional.one_hot(kind, KINDS).float()


def gearnet(s: LayerInputs) -> SpeedCase:
    """Compare GearNet with six kinds of edges."""
    width, kind = s.h.size(1), _kinds(s.edges)
    fields = {"h": FieldSpec("h", "node", f"{width}x0e"), "edges": field("edges")}
    ours = GearNet(fields | {"edge_kind": FieldSpec("edge_kind", "edge", f"{KINDS}x0e")}, dim=width)
    plain, (source, target), ones = SparseConv(ours.conv), s.edges.index, torch.ones(s.edges.num_edges)
    relation = kind.argmax(1)
    return SpeedCase(
        lambda x: ours({"h": x, "edges": s.edges, "edge_kind": kind})["h"],
        ours,
        "as TorchDrug: sparse adjacency of all relations",
        lambda x: plain(x, source, target, relation, ones),
        plain,
        s.h.detach().clone().requires_grad_(),
        f"{width} channels",
        ((KINDS + 1) * width**2, width, "W_r and W_0 on nodes; a sum on edges"),
    )


def gearnet_edge(s: LayerInputs) -> SpeedCase:
    """Compare GearNetEdge with eight bins of angles, on edges that follow 30 edges each."""
    fields = {"edge_h": FieldSpec("edge_h", "edge", f"{EDGE_WIDTH}x0e")} | {n: field(n) for n in ("edge_vec", "edges")}
    ours, vec = GearNetEdge(fields, dim=EDGE_WIDTH, bins=BINS), s.vec
    plain = SparseConv(ours.conv)

    after, slot, relation = angle_bins(s.edges, vec, BINS).nonzero().unbind(1)  # line graph
    before = s.edges.ptr[:-1][s.edges.index[0][after]] + slot
    ones = torch.ones(len(after))
    degree = s.edges.max_degree
    return SpeedCase(
        lambda x: ours({"edge_h": x, "edge_vec": vec, "edges": s.edges})["edge_h"],
        ours,
        "as TorchDrug: sparse adjacency of all relations",
        lambda x: plain(x, before, after, relation, ones),
        plain,
        s.e.detach().clone().requires_grad_(),
        f"{EDGE_WIDTH} channels of edges",
        (0, (BINS + 1) * EDGE_WIDTH**2 + degree * EDGE_WIDTH, "W_b and W_0 on edges; a sum on pairs of edges"),
    )


CASES = {"gearnet": gearnet, "gearnet_edge": gearnet_edge}
