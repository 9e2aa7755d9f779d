"""GearNet against values of TorchDrug and against explicit sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.gearnet.layers import GearNet, GearNetEdge
from protgraph_plugins.gearnet.line_graph import angle_bin_sum, angle_bins, vector_angle
from protgraph_plugins.gearnet.reference import layers_from_torchdrug

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, WiringError
from protgraph.ops import Edges
from protgraph.testing import make_protein
from protgraph.testing.symmetry import relative_error

F64 = torch.float64
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def specs(**widths):
    levels = {"h": "node", "edge_h": "edge", "edge_kind": "edge"}
    pairs = {n: FieldSpec(n, levels[n], f"{w}x0e") for n, w in widths.items()}
    return pairs | {"edges": field("edges"), "edge_vec": field("edge_vec")}


@pytest.fixture
def vectors(shared_reference):
    """``vectors(name, dtype)``: arrays of a reference file, with edges sorted by target."""

    def load(name, dtype=F64):
        with np.load(shared_reference / "gearnet" / f"{name}.npz") as z:
            found = {k: torch.from_numpy(z[k]) for k in z.files}
        found = {k: v.to(dtype) if v.is_floating_point() else v for k, v in found.items()}
        order = found["in/edge_index"][1].argsort(stable=True)
        for k in ("in/relation", "in/edge_weight", "in/edge_feature"):
            if k in found:
                found[k] = found[k][order]
        found["in/edge_index"], found["order"] = found["in/edge_index"][:, order], order
        return found

    return load


def kinds(z):
    one_hot = torch.nn.functional.one_hot(z["in/relation"], 4).to(z["in/h"])
    return one_hot * z["in/edge_weight"][:, None] if "in/edge_weight" in z else one_hot


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "reduce"), [("geometric_rgcn", "sum"), ("rgcn_mean", "mean")])
def test_a_convolution_equals_torchdrug_in_value_and_gradients(vectors, dtype, name, reduce):
    z = vectors(name, dtype)
    (layer,) = layers_from_torchdrug({k[2:]: v for k, v in z.items() if k.startswith("w/")}, reduce=reduce)
    h = z["in/h"].requires_grad_()
    out = layer({"h": h, "edges": Edges(z["in/edge_index"], 15), "edge_kind": kinds(z)})["h"]
    assert relative_error(out, z["out/h"]) <= TOLERANCE[dtype]
    (out * torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out)).sum().backward()
    assert relative_error(h.grad, z["grad/h"]) <= TOLERANCE[dtype]
    for key, parameter in layer.conv.named_parameters():
        assert relative_error(parameter.grad, z[f"grad/w/{key}"]) <= TOLERANCE[dtype], key


def pairs_of(edges, vec, bins):
    """Return sending edge, receiving edge and bin of each pair of edges, ``(P, 3)``."""
    after, slot, number = angle_bins(edges, vec, bins).nonzero().unbind(1)
    return torch.stack([edges.ptr[edges.index[0][after]] + slot, after, number], 1)


def test_angles_and_bins_equal_torchdrugs_line_graph(vectors):
    z = vectors("gearnet_edge_mp")
    edges = Edges(z["in/edge_index"], 15)
    before, after, bins = pairs_of(edges, z["in/pos"][edges.index[0]] - z["in/pos"][edges.index[1]], 8).unbind(1)
    ours = torch.stack([z["order"][before], z["order"][after], bins], 1)
    assert set(map(tuple, ours.tolist())) == set(map(tuple, z["mid/line_graph_edge_list"].tolist()))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_layers_compose_to_torchdrugs_gearnet_edge(vectors, dtype):
    z = vectors("gearnet_edge_mp", dtype)
    state = {k[2:]: v for k, v in z.items() if k.startswith("w/")}
    edges = Edges(z["in/edge_index"], 15)
    f = {"h": z["in/h"], "edges": edges, "edge_kind": kinds(z), "edge_h": z["in/edge_feature"]}
    f["edge_vec"] = z["in/pos"][edges.index[0]] - z["in/pos"][edges.index[1]]
    outputs = []
    for layer in layers_from_torchdrug(state, shortcut=True):
        f = f | layer(f)
        outputs += [f["h"]] if isinstance(layer, GearNet) else []
    assert relative_error(torch.cat(outputs, 1), z["out/node_feature"]) <= TOLERANCE[dtype]


def test_states_of_other_modules_are_errors(vectors):
    z = vectors("geometric_rgcn")
    state = {k[2:]: v for k, v in z.items() if k.startswith("w/")}
    with pytest.raises(CheckpointError, match="GearNet"):
        layers_from_torchdrug({"weight": torch.zeros(1)}, shortcut=True)
    with pytest.raises(CheckpointError, match=r"edge_linear\.bias"):
        layers_from_torchdrug(state | {"edge_linear.weight": torch.zeros(6, 3)}, reduce="sum")
    with pytest.raises(CheckpointError, match=r"batch_norm\.bias"):
        layers_from_torchdrug(state | {"batch_norm.weight": torch.zeros(7)}, reduce="sum")


def some_edges(n=9, seed=0, degree=None):
    g = torch.Generator().manual_seed(seed)
    index = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T.flip(0)
    index = index[:, index[0] != index[1]]
    if degree is None:
        index = index[:, torch.rand(index.size(1), generator=g) < 0.4]
    else:
        index = index.view(2, n, n - 1)[:, :, :degree].flatten(1)
    return Edges(index, n, degree=degree)


@pytest.mark.parametrize("degree", [None, 3])
def test_edges_of_several_kinds_count_in_each(degree):
    edges = some_edges(degree=degree)
    g = torch.Generator().manual_seed(1)
    h = torch.randn(9, 5, generator=g, dtype=F64)
    kind = (torch.rand(edges.num_edges, 3, generator=g) < 0.5).double()
    e = torch.randn(edges.num_edges, 5, generator=g, dtype=F64)
    layer = GearNet(specs(h=5, edge_h=5, edge_kind=3), dim=4).double()
    out = layer({"h": h, "edges": edges, "edge_kind": kind, "edge_h": e})["h"]
    w = layer.conv.linear.weight.view(4, 3, 5)
    of_nodes = layer.conv.self_loop(h) + layer.conv.linear.bias
    of_edges = layer.conv.linear.bias.expand(9, -1).clone()
    for number, (j, i) in enumerate(edges.index.T.tolist()):
        for r in range(3):
            of_nodes[i] = of_nodes[i] + kind[number, r] * (w[:, r] @ h[j])
            of_edges[i] = of_edges[i] + kind[number, r] * (w[:, r] @ e[number])
    assert relative_error(out, of_nodes.relu() + of_edges.relu()) <= 1e-12


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_a_convolution_with_edge_features_and_batch_normalization_loads(reduce, training):
    """With TorchDrug's names: m = h_j + edge_linear(a), and batch normalization before the activation."""
    edges, g = some_edges(), torch.Generator().manual_seed(2)
    shapes = {"self_loop.weight": (4, 5), "self_loop.bias": (4,), "linear.weight": (4, 15), "linear.bias": (4,)}
    shapes |= {
        "edge_linear.weight": (5, 2),
        "edge_linear.bias": (5,),
        "batch_norm.weight": (4,),
        "batch_norm.bias": (4,),
    }
    state = {name: torch.randn(shape, generator=g, dtype=F64) for name, shape in shapes.items()}
    state |= {"batch_norm.running_mean": torch.randn(4, generator=g, dtype=F64)}
    state |= {"batch_norm.running_var": 1 + torch.rand(4, generator=g, dtype=F64)}
    state |= {"batch_norm.num_batches_tracked": torch.tensor(0)}
    (layer,) = layers_from_torchdrug(state, reduce=reduce)
    h, a = torch.randn(9, 5, generator=g, dtype=F64), torch.randn(edges.num_edges, 2, generator=g, dtype=F64)
    kind = torch.rand(edges.num_edges, 3, generator=g).double() * (torch.rand(edges.num_edges, 3, generator=g) < 0.6)
    f = {"h": h, "edges": edges, "edge_kind": kind, "edge_attr": a}
    out = layer.train(training)(f)["h"]

    sums, totals = torch.zeros(9, 3, 5, dtype=F64), torch.zeros(9, 3, 1, dtype=F64)
    for number, (j, i) in enumerate(edges.index.T.tolist()):
        message = h[j] + state["edge_linear.weight"] @ a[number] + state["edge_linear.bias"]
        sums[i] += kind[number][:, None] * message
        totals[i] += kind[number][:, None]
    if reduce == "mean":
        sums = sums / totals.masked_fill(totals == 0, 1)
    x = sums.flatten(1) @ state["linear.weight"].T + state["linear.bias"]
    x = x + h @ state["self_loop.weight"].T + state["self_loop.bias"]
    mean = x.mean(0) if training else state["batch_norm.running_mean"]
    variance = x.var(0, correction=0) if training else state["batch_norm.running_var"]
    expected = (x - mean) / (variance + 1e-5).sqrt() * state["batch_norm.weight"] + state["batch_norm.bias"]
    assert relative_error(out, expected.relu()) <= 1e-10


@pytest.mark.parametrize("degree", [None, 3])
def test_angles_cover_all_pairs_of_adjacent_edges(degree):
    edges = some_edges(degree=degree)
    j, i = edges.index.tolist()
    expected = {(a, b) for a in range(len(j)) for b in range(len(j)) if i[a] == j[b]}
    pairs = pairs_of(edges, torch.randn(len(j), 3, dtype=F64), 8)
    assert set(map(tuple, pairs[:, :2].tolist())) == expected and len(pairs) == len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [None, 3])
def test_an_edge_receives_messages_by_angle(degree, monkeypatch):
    from protgraph_plugins.gearnet import line_graph

    edges = some_edges(degree=degree)
    g = torch.Generator().manual_seed(2)
    pos, x = torch.randn(9, 3, generator=g, dtype=F64), torch.randn(edges.num_edges, 4, generator=g, dtype=F64)
    layer = GearNetEdge(specs(edge_h=4), dim=5, bins=6).double()
    vec = pos[edges.index[0]] - pos[edges.index[1]]
    w = layer.conv.linear.weight.view(5, 6, 4)
    out = layer.conv.self_loop(x) + layer.conv.linear.bias
    for b, (j, i) in enumerate(edges.index.T.tolist()):
        for a, (k, middle) in enumerate(edges.index.T.tolist()):
            if middle == j:
                one, two = pos[i] - pos[j], pos[k] - pos[j]
                angle = torch.atan2(torch.linalg.norm(torch.linalg.cross(one, two)), one @ two)
                out[b] = out[b] + w[:, min(int(angle / torch.pi * 6), 5)] @ x[a]
    f = {"edge_h": x, "edge_vec": vec, "edges": edges}
    assert relative_error(layer(f)["edge_h"], out.relu()) <= 1e-12
    monkeypatch.setattr(line_graph, "_CHUNK", 40)
    assert relative_error(layer(f)["edge_h"], out.relu()) <= 1e-12  # in blocks of edges
    angles = angle_bins(edges, vec, 6)

    def run(x, weight):
        return angle_bin_sum(edges, x, angles, weight)

    given = x.requires_grad_(), layer.conv.linear.weight[:2].detach().requires_grad_()
    assert torch.autograd.gradcheck(run, given) and torch.autograd.gradgradcheck(run, given)


def test_a_batch_stores_its_largest_degree():
    residues = [make_protein((n,), seed=n) for n in (12, 9)]
    graphs = [pg.build_graph(r, [pg.component("radius", radius=8.0)]) for r in residues]
    batch = collate(graphs)
    assert (
        batch.max_degree
        == int(Edges.from_graph(batch).count.max())
        == max(Edges.from_graph(graph).max_degree for graph in graphs)
    )
    assert "max_degree" not in collate([pg.build_graph(r, [pg.component("knn", k=4)]) for r in residues])


def test_all_entries_as_on_devices_equal_nonzero_entries(monkeypatch):
    from protgraph_plugins.gearnet import layers

    edges = some_edges()
    kind = (torch.rand(edges.num_edges, 3) < 0.5).double()
    f = {"h": torch.randn(9, 5, dtype=F64), "edges": edges, "edge_kind": kind}
    f["edge_h"] = torch.randn(edges.num_edges, 5, dtype=F64)
    layer = GearNet(specs(h=5, edge_h=5, edge_kind=3), dim=4).double()
    before = layer(f)["h"]
    every = torch.arange(kind.numel())
    monkeypatch.setattr(layers, "_entries", lambda k: (every // 3, every % 3, k.flatten()))
    again = layer(f | {"edge_kind": kind.clone()})["h"]  # another tensor: nothing is cached
    torch.testing.assert_close(again, before, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("training", [True, False])
def test_no_edges_and_one_residue_are_finite(norm, training):
    edges = Edges(torch.zeros(2, 0, dtype=torch.long), 1)
    f = {"h": torch.ones(1, 4), "edges": edges, "edge_kind": torch.zeros(0, 3), "edge_vec": torch.zeros(0, 3)}
    f["edge_h"] = torch.zeros(0, 4)
    f |= GearNetEdge(specs(edge_h=4), dim=4, norm=norm).train(training)(f)
    out = GearNet(specs(h=4, edge_h=4, edge_kind=3), dim=4, norm=norm).train(training)(f)["h"]
    assert torch.isfinite(out).all()


def test_coincident_nodes_have_an_angle_of_zero():
    zero, one = torch.zeros(1, 3), torch.ones(1, 3)
    assert vector_angle(zero, one).item() == vector_angle(zero, zero).item() == 0


def test_edges_and_nodes_must_be_equally_wide():
    with pytest.raises(WiringError, match="widths of gearnet"):
        GearNet(specs(h=4, edge_h=5, edge_kind=3))
