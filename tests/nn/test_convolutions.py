"""``gcn``, ``gin`` and ``sage`` equal PyG's layers and the formulas of their papers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

from protgraph import layers
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn.layers.convolutions import GCN, GIN, SAGE
from protgraph.nn.standardize import RowBatchNorm


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


# --- GIN and GraphSAGE -----------------------------------------------------------------------------------------------


DTYPES = [(torch.float64, 1e-12), (torch.float32, 1e-5)]


def gin_pair(specs, learn_eps, norm="none"):
    ours = GIN({n: specs[n] for n in ("h", "edges")}, dim=6, norm=norm, learn_eps=learn_eps)
    norms = [nn.BatchNorm1d(6) if norm == "batch" else nn.Identity() for _ in range(2)]
    network = nn.Sequential(nn.Linear(12, 6), norms[0], nn.ReLU(), nn.Linear(6, 6), norms[1], nn.ReLU())
    theirs = GINConv(network, train_eps=learn_eps)  # it initializes the network again
    network.load_state_dict(ours.mlp.state_dict())
    if learn_eps:
        ours.eps.data.fill_(0.3)
        theirs.eps.data.fill_(0.3)
    return ours, theirs


@pytest.mark.parametrize("dtype, tol", DTYPES)
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("learn_eps", [True, False])
def test_gin_equals_pyg(scene, specs, agree, dtype, tol, degree, learn_eps):
    s = scene(degree=degree)
    ours, theirs = (m.to(dtype) for m in gin_pair(specs, learn_eps))
    h = s.f["h"].to(dtype).requires_grad_()
    agree(lambda: ours(s.inputs(ours.fields, h=h))["h"], lambda: theirs(h, s.index), [h], tol=tol)
    own, other = (
        torch.autograd.grad(out.sin().sum(), list(m.parameters()))
        for m, out in ((ours, ours(s.inputs(ours.fields, h=h))["h"]), (theirs, theirs(h, s.index)))
    )
    assert len(own) == 4 + learn_eps
    # PyG has eps last or first; the other gradients are in the order of the network
    assert sorted(float(g.norm()) for g in own) == pytest.approx(sorted(float(g.norm()) for g in other), rel=10 * tol)


def test_gin_with_batch_normalization_trains_as_pyg(scene, specs, float64):
    s = scene()
    ours, theirs = gin_pair(specs, learn_eps=False, norm="batch")
    for _ in range(2):  # the second call sees the running statistics of the first
        torch.testing.assert_close(ours(s.inputs(ours.fields))["h"], theirs(s.f["h"], s.index), rtol=1e-12, atol=1e-13)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(s.inputs(ours.fields))["h"], theirs(s.f["h"], s.index), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype, tol", DTYPES)
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("dim", [6, 16])
@pytest.mark.parametrize("aggregate", ["mean", "sum", "max"])
def test_sage_equals_pyg(scene, specs, agree, dtype, tol, degree, dim, aggregate):
    s = scene(degree=degree)
    ours = SAGE({n: specs[n] for n in ("h", "edges")}, dim=dim, aggregate=aggregate, act="none").to(dtype)
    theirs = SAGEConv(12, dim, aggr=aggregate).to(dtype)
    theirs.lin_r.load_state_dict(ours.own.state_dict())
    theirs.lin_l.load_state_dict(ours.neighbors.state_dict())
    h = s.f["h"].to(dtype).requires_grad_()
    agree(lambda: ours(s.inputs(ours.fields, h=h))["h"], lambda: theirs(h, s.index), [h], tol=tol)


def test_a_single_row_is_normalized_by_running_statistics(float64):
    norm, x = RowBatchNorm(3), torch.arange(3.0)[None]
    norm.running_mean.fill_(1.0)
    norm.running_var.fill_(4.0)
    before = norm.running_mean.clone()
    torch.testing.assert_close(norm(x), (x - 1) / torch.tensor(4.0 + 1e-5).sqrt())
    assert torch.equal(norm.running_mean, before)


def test_invalid_options_are_errors(specs):
    given = {n: specs[n] for n in ("h", "edges")}
    with pytest.raises(OptionError, match="'batched'"):
        layers.create("gin", given, options={"norm": "batched"})
    with pytest.raises(OptionError, match="'median'"):
        layers.create("sage", given, options={"aggregate": "median"})
