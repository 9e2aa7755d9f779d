"""Message passing layers: ours beside PyG's with the same weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GCNConv, MessagePassing

from protgraph.bench.speed.inputs import apart, forward_backward, protein, scalars, threads
from protgraph.bench.speed.timing import Measurement, interleave
from protgraph.data.edges import Edges
from protgraph.data.fields import field
from protgraph.data.graph import collate
from protgraph.nn.layers.gat import GAT
from protgraph.nn.layers.gcn import GCN
from protgraph.nn.layers.mpnn import MPNN

__all__ = ["measure"]

PROTEINS, RESIDUES, DEGREE, WIDTH, EDGE_WIDTH, HEADS = 8, 256, 30, 128, 16, 4

Way = Callable[[Tensor], Tensor]


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """8 proteins × 256 residues × 30 neighbours, width 128; forward and backward through inputs and weights.

    The error is that of results and of their gradients in the input; weights may be cut up differently.
    """
    batch = collate([protein(RESIDUES, DEGREE, seed=i) for i in range(PROTEINS)])
    edges = Edges.of(batch)
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(edges.num_nodes, WIDTH, generator=generator, requires_grad=True)
    e = torch.randn(edges.num_edges, EDGE_WIDTH, generator=generator)
    cotangent = torch.randn(edges.num_nodes, WIDTH, generator=generator)
    found = []
    for name, make in (("gcn", _gcn), ("gat", _gat), ("mpnn", _mpnn)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            ours, our_layer, peer, theirs, their_layer = make(edges, e)
        ways = {
            name: forward_backward(ours, h, cotangent, list(our_layer.parameters())),
            peer: forward_backward(theirs, h, cotangent, list(their_layer.parameters())),
        }
        a, b = ways[name](), ways[peer]()
        found.append(
            Measurement(
                title=f"{name}, {PROTEINS} × {RESIDUES} residues × {DEGREE} neighbours × {WIDTH} channels, forward and "
                f"backward, {threads()}",
                reference=name,
                rows=interleave(ways, reference=name, seconds=seconds / 3),
                floor=_floor(name),
                error=apart(a[:2], b[:2]),
            )
        )
    return found


def _floor(name: str) -> str:
    """The products of the formula, forward (backward takes twice that): matrices on nodes, the least on edges."""
    nodes, edges = PROTEINS * RESIDUES, PROTEINS * RESIDUES * DEGREE
    matrices, channels, where = {
        "gcn": (1, 1, "W on nodes; a weighted sum on edges"),
        "gat": (2, EDGE_WIDTH + 2, "W, W' on nodes; W_e, a and a sum on edges"),
        "mpnn": (6, EDGE_WIDTH + 1, "W₁, W₂, W₄, U on nodes; W₃ and a sum on edges"),
    }[name]
    products = matrices * nodes * WIDTH**2 + channels * edges * WIDTH
    return f"{products / 1e6:,.0f} M multiply-adds forward: {where}"


def _gcn(edges: Edges, e: Tensor) -> tuple[Way, nn.Module, str, Way, nn.Module]:
    ours, theirs = GCN({"h": scalars("h", WIDTH), "edges": field("edges")}, dim=WIDTH), GCNConv(WIDTH, WIDTH)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.linear.weight)
    return (
        lambda x: ours({"h": x, "edges": edges})["h"],
        ours,
        "PyG GCNConv",
        lambda x: theirs(x, edges.index),
        theirs,
    )


def _gat(edges: Edges, e: Tensor) -> tuple[Way, nn.Module, str, Way, nn.Module]:
    given = {"h": scalars("h", WIDTH), "edges": field("edges"), "edge_attr": scalars("edge_attr", EDGE_WIDTH)}
    ours = GAT(given, dim=WIDTH, heads=HEADS, version=2)
    theirs = GATv2Conv(WIDTH, WIDTH // HEADS, heads=HEADS, edge_dim=EDGE_WIDTH, fill_value="mean")
    with torch.no_grad():
        theirs.lin_l.load_state_dict(ours.score.source.state_dict())
        theirs.lin_r.load_state_dict(ours.score.target.state_dict())
        theirs.lin_edge.load_state_dict(ours.score.edge.state_dict())
        theirs.att.copy_(ours.score.att[None])
    return (
        lambda x: ours({"h": x, "edges": edges, "edge_attr": e})["h"],
        ours,
        "PyG GATv2Conv",
        lambda x: theirs(x, edges.index, e),
        theirs,
    )


class _ConcatMPNN(MessagePassing):
    """The same layer as one writes it from the PyG tutorial: a perceptron over [h_i, h_j, e_ij] on every edge."""

    def __init__(self, ours: MPNN) -> None:
        super().__init__(aggr="sum")
        joined = nn.Linear(2 * WIDTH + EDGE_WIDTH, WIDTH)
        with torch.no_grad():
            joined.weight.copy_(torch.cat([ours.target.weight, ours.source.weight, ours.edge.weight], 1))
            joined.bias.copy_(ours.target.bias)
        self.perceptron = nn.Sequential(joined, nn.SiLU(), ours.message)
        self.updated = ours.update

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.updated(torch.cat([x, self.propagate(edge_index, x=x, edge_attr=edge_attr)], 1))

    def message(self, x_i: Tensor, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        return self.perceptron(torch.cat([x_i, x_j, edge_attr], 1))


def _mpnn(edges: Edges, e: Tensor) -> tuple[Way, nn.Module, str, Way, nn.Module]:
    given = {"h": scalars("h", WIDTH), "edges": field("edges"), "edge_attr": scalars("edge_attr", EDGE_WIDTH)}
    ours = MPNN(given, dim=WIDTH, aggregate="sum", update="mlp", act="silu")
    theirs = _ConcatMPNN(ours)
    return (
        lambda x: ours({"h": x, "edges": edges, "edge_attr": e})["h"],
        ours,
        "PyG MessagePassing over concatenated pairs",
        lambda x: theirs(x, edges.index, e),
        theirs,
    )
