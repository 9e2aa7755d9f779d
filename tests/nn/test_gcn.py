"""``gcn`` equals PyG's GCNConv, and with norm="mean" the mean of a node and its neighbors."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv

from protgraph import layers
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn.layers.convolutions import GCN


def pair(specs, dim, weighted):
    given = {n: specs[n] for n in ("h", "edges", *(["edge_weight"] if weighted else []))}
    ours, theirs = GCN(given, dim=dim), GCNConv(specs["h"].dim, dim)
    theirs.lin.weight.data.copy_(ours.linear.weight)
    ours.bias.data.normal_()
    theirs.bias.data.copy_(ours.bias)
    return ours, theirs


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dim", [6, 16])
def test_symmetric_equals_pyg(scene, specs, agree, dtype, tol, degree, weighted, dim):
    s = scene(degree=degree)
    ours, theirs = (m.to(dtype) for m in pair(specs, dim, weighted))
    h = s.f["h"].to(dtype).requires_grad_()
    w = s.f["edge_weight"].to(dtype).requires_grad_()
    wrt = [h, w] if weighted else [h]
    f = s.inputs(ours.fields, h=h, edge_weight=w)
    agree(lambda: ours(f)["h"], lambda: theirs(h, s.index, w.flatten() if weighted else None), wrt, tol=tol)
    # the gradient of the weights, too
    a = torch.autograd.grad(ours(f)["h"].sin().sum(), ours.linear.weight)[0]
    b = torch.autograd.grad(theirs(h, s.index, w.flatten() if weighted else None).sin().sum(), theirs.lin.weight)[0]
    assert (a - b).abs().max() <= tol * b.abs().max()


@pytest.mark.parametrize("degree", [None, 3])
def test_mean_is_the_mean_of_a_node_and_its_neighbors(scene, specs, float64, degree):
    s = scene(degree=degree)
    layer = GCN({n: specs[n] for n in ("h", "edges")}, dim=6, norm="mean")
    got = layer(s.inputs(layer.fields))["h"]
    for i in range(s.num_nodes):
        group = [i, *s.index[0][s.index[1] == i].tolist()]
        torch.testing.assert_close(got[i], s.f["h"][group].mean(0) @ layer.linear.weight.T, rtol=1e-12, atol=1e-14)


def test_weighted_mean_uses_the_edge_weights(scene, specs, float64):
    s = scene()
    layer = GCN({n: specs[n] for n in ("h", "edges", "edge_weight")}, dim=12, norm="mean")
    dense = torch.eye(s.num_nodes).index_put((s.index[1], s.index[0]), s.f["edge_weight"].flatten())
    expected = layer.linear(dense @ s.f["h"] / dense.sum(1, keepdim=True))
    torch.testing.assert_close(layer(s.inputs(layer.fields))["h"], expected, rtol=1e-12, atol=1e-14)


def test_invalid_options_and_wiring_are_errors(specs):
    with pytest.raises(OptionError, match="'symmetrc'.*'symmetric'"):
        layers.create("gcn", specs, options={"norm": "symmetrc"})
    with pytest.raises(WiringError, match="'edge_attr' has 5"):
        GCN({**specs, "edge_weight": specs["edge_attr"]})
    with pytest.raises(WiringError, match="invariants"):
        GCN({**specs, "h": FieldSpec("h", "node", "4x0e+2x1o")})
