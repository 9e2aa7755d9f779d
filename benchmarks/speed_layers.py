"""Layers: protgraph, and PyG, e3nn or the plain formula with the same weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from protgraph_plugins.gat import GAT
from protgraph_plugins.graph_transformer import GraphTransformer
from protgraph_plugins.mpnn import MPNN
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GCNConv, MessagePassing, TransformerConv

from benchmarks import cases_gearnet, cases_geometric, cases_ligandmpnn, cases_peers
from benchmarks.layer_case import LayerInputs, SpeedCase
from benchmarks.synthetic_inputs import forward_backward, largest_difference, machine, protein, scalars
from benchmarks.timing import Measurement, interleave
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.data.graph.protein_graph import collate
from protgraph.nn.layers.convolutions import GCN
from protgraph.ops import Edges, Proteins

__all__ = ["layer_cases", "layer_inputs", "measure"]

PROTEINS, RESIDUES, DEGREE, WIDTH, EDGE_WIDTH, HEADS = 8, 256, 30, 128, 16, 4
PROTEINS_ON_GPU = 64
ROUNDS = 3  # minimum: some plain formulas take seconds


def measure(*, seconds: float = 5.0, device: str = "cpu") -> list[Measurement]:
    """Measure 8 proteins × 256 residues × 30 neighbors, width 128; forward and backward to inputs and weights.

    On a GPU there are 64 proteins.

    The error is that of outputs and of gradients of the input; the weights may have another layout.
    """
    if missing := cases_peers.missing_peers():
        warnings.warn(f"not measured, because not installed: {', '.join(missing)}", stacklevel=2)
    cases, proteins = layer_cases(), PROTEINS if device == "cpu" else PROTEINS_ON_GPU
    measurements = []
    for name, make in cases.items():
        with torch.random.fork_rng(devices=[] if device == "cpu" else [device]):
            torch.manual_seed(0)
            with torch.device(device):
                case = make(layer_inputs(proteins, device))
            measurements.append(_measured(name, case, proteins, seconds / len(cases), device))
    return measurements


def layer_cases() -> dict[str, Callable[[LayerInputs], SpeedCase]]:
    """Return every measured layer by name."""
    cases = {"gcn": _gcn, "gat": _gat, "graph_transformer": _graph_transformer, "mpnn": _mpnn}
    return cases | cases_geometric.CASES | cases_gearnet.CASES | cases_ligandmpnn.CASES | cases_peers.CASES


def layer_inputs(proteins: int = PROTEINS, device: str = "cpu") -> LayerInputs:
    """Return the batch that all layers are measured on."""
    with torch.device("cpu"):
        batch = collate([protein(RESIDUES, DEGREE, seed=i) for i in range(proteins)])
    batch = batch.to(device)
    edges = Edges.from_graph(batch)
    h, e = torch.randn(edges.num_nodes, WIDTH, requires_grad=True), torch.randn(edges.num_edges, EDGE_WIDTH)
    return LayerInputs(batch.pos, edges, Proteins.from_graph(batch), h, e)


def _measured(name: str, case: SpeedCase, proteins: int, seconds: float, device: str) -> Measurement:
    with torch.no_grad():
        cotangent = torch.randn_like(case.ours(case.x))
    ways = {
        name: forward_backward(case.ours, case.x, cotangent, list(case.layer.parameters())),
        case.peer: forward_backward(case.theirs, case.x, cotangent, list(case.other.parameters())),
    }
    a, b = ways[name](), ways[case.peer]()
    per_node, per_edge, where = case.products
    nodes = proteins * RESIDUES
    products = nodes * per_node + nodes * DEGREE * per_edge
    return Measurement(
        title=f"{name}, {proteins} × {RESIDUES} residues × {DEGREE} neighbors × {case.channels}, forward and "
        f"backward, {machine(device)}",
        reference=name,
        rows=interleave(ways, reference=name, seconds=seconds, rounds=ROUNDS, warm=True, device=device),
        lower_bound=f"{products / 1e6:,.0f} M multiply-adds forward: {where}",
        error=largest_difference(a[:2], b[:2]),
    )


def _gcn(s: LayerInputs) -> SpeedCase:
    ours, theirs = GCN({"h": scalars("h", WIDTH), "edges": field("edges")}, dim=WIDTH), GCNConv(WIDTH, WIDTH)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.linear.weight)
    return SpeedCase(
        lambda x: ours({"h": x, "edges": s.edges})["h"],
        ours,
        "PyG GCNConv",
        lambda x: theirs(x, s.edges.index),
        theirs,
        s.h,
        f"{WIDTH} channels",
        (WIDTH**2, WIDTH, "W on nodes; a weighted sum on edges"),
    )


def _fields() -> dict[str, FieldSpec]:
    return {"h": scalars("h", WIDTH), "edges": field("edges"), "edge_attr": scalars("edge_attr", EDGE_WIDTH)}


def _with_edge_features(
    s: LayerInputs, ours: nn.Module, peer: str, theirs: nn.Module, products: tuple[float, float, str]
) -> SpeedCase:
    """Compare a layer that reads h and edge features with a module called with x, edge index and edge features."""
    return SpeedCase(
        lambda x: ours({"h": x, "edges": s.edges, "edge_attr": s.e})["h"],
        ours,
        peer,
        lambda x: theirs(x, s.edges.index, s.e),
        theirs,
        s.h,
        f"{WIDTH} channels",
        products,
    )


def _gat(s: LayerInputs) -> SpeedCase:
    ours = GAT(_fields(), dim=WIDTH, heads=HEADS, version=2)
    theirs = GATv2Conv(WIDTH, WIDTH // HEADS, heads=HEADS, edge_dim=EDGE_WIDTH, fill_value="mean")
    with torch.no_grad():
        theirs.lin_l.load_state_dict(ours.score.source.state_dict())
        theirs.lin_r.load_state_dict(ours.score.target.state_dict())
        theirs.lin_edge.load_state_dict(ours.score.edge.state_dict())
        theirs.att.copy_(ours.score.att[None])
    return _with_edge_features(
        s,
        ours,
        "PyG GATv2Conv",
        theirs,
        (2 * WIDTH**2, (EDGE_WIDTH + 2) * WIDTH, "W, W' on nodes; W_e, a and a sum on edges"),
    )


def _graph_transformer(s: LayerInputs) -> SpeedCase:
    ours = GraphTransformer(_fields(), dim=WIDTH, heads=HEADS)
    theirs = TransformerConv(WIDTH, WIDTH // HEADS, heads=HEADS, edge_dim=EDGE_WIDTH)
    with torch.no_grad():
        weights = zip(ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3), strict=True)
        for part, (weight, bias) in zip((theirs.lin_query, theirs.lin_key, theirs.lin_value), weights, strict=True):
            part.weight.copy_(weight)
            part.bias.copy_(bias)
    theirs.lin_edge.load_state_dict(ours.edge.state_dict())
    theirs.lin_skip.load_state_dict(ours.root.state_dict())
    return _with_edge_features(
        s,
        ours,
        "PyG TransformerConv",
        theirs,
        (
            4 * WIDTH**2 + 2 * EDGE_WIDTH * WIDTH,
            2 * WIDTH + 2 * EDGE_WIDTH * HEADS,
            "W_q, W_k, W_v, R and E on nodes; logits and sums on edges",
        ),
    )


class _ConcatMPNN(MessagePassing):
    """The same layer as in the PyG tutorial: a perceptron over [h_i, h_j, e_ij] on every edge."""

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


def _mpnn(s: LayerInputs) -> SpeedCase:
    ours = MPNN(_fields(), dim=WIDTH, aggregate="sum", update="mlp", act="silu")
    theirs = _ConcatMPNN(ours)
    return _with_edge_features(
        s,
        ours,
        "PyG MessagePassing over concatenated pairs",
        theirs,
        (6 * WIDTH**2, (EDGE_WIDTH + 1) * WIDTH, "W₁, W₂, W₄, U on nodes; W₃ and a sum on edges"),
    )
