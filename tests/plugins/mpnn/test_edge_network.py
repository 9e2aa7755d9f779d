"""``edge_network`` equals PyG's NNConv and the matrices of every edge."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.mpnn.edge_network import EdgeNetwork, _outer_sum
from torch import nn
from torch_geometric.nn import NNConv

from protgraph.errors import WiringError
from protgraph.nn.layers.merge import GRU


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("degree", [None, 3])
def test_edge_network_equals_nnconv(scene, specs, agree, float64, dtype, tol, degree):
    s = scene(degree=degree)
    ours = EdgeNetwork({n: specs[n] for n in ("h", "edges", "edge_attr")}, dim=6, hidden=7)
    network = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 12 * 6))
    theirs = NNConv(12, 6, network)
    network[0].load_state_dict(ours.edge.state_dict())
    network[2].weight.data.copy_(ours.theta[:-1].flatten(1).t())
    network[2].bias.data.copy_(ours.theta[-1].flatten())
    theirs.lin.weight.data.copy_(ours.root.weight)
    theirs.bias.data.copy_(ours.root.bias)
    ours, theirs = ours.to(dtype), theirs.to(dtype)
    h, e = (s.f[n].to(dtype).requires_grad_() for n in ("h", "edge_attr"))
    f = s.inputs(ours.fields, h=h, edge_attr=e)
    agree(lambda: ours(f)["h"], lambda: theirs(h, s.index, e), [h, e], tol=tol)
    a = torch.autograd.grad(ours(f)["h"].sin().sum(), ours.theta)[0]
    b = torch.autograd.grad(theirs(h, s.index, e).sin().sum(), network[2].weight)[0]
    assert (a[:-1].flatten(1).t() - b).abs().max() <= tol * b.abs().max()


def test_edge_network_then_gru_is_gilmers_step(scene, specs, float64):
    s = scene()
    message = EdgeNetwork({n: specs[n] for n in ("h", "edges", "edge_attr")}, dim=12, root=False)
    update = GRU({"h": specs["h"], "update": message.out["h"]})
    m = message(s.inputs(message.fields))["h"]
    got = update({"h": s.f["h"], "update": m})["h"]
    hidden = torch.cat([message.edge(s.f["edge_attr"]).relu(), torch.ones(s.index.size(1), 1)], 1)
    matrix = torch.einsum("ek,kcd->ecd", hidden, message.theta)  # A(e_ij) of every edge
    explicit = torch.zeros(s.num_nodes, 12)
    for (j, i), a in zip(s.index.t(), matrix, strict=True):
        explicit[i] += s.f["h"][j] @ a
    torch.testing.assert_close(m, explicit, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(got, update.cell(explicit, s.f["h"]), rtol=1e-12, atol=1e-13)


def test_outer_sum_is_the_same_regular_and_ragged(scene, float64):
    s = scene(degree=3)
    w = torch.randn(s.index.size(1), 7)
    regular, ragged = (_outer_sum(s.edges(degree=d), s.f["h"], w) for d in (True, False))
    torch.testing.assert_close(regular, ragged, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(regular[:, 2], s.edges().gather_sum(s.f["h"], w[:, 2]), rtol=1e-13, atol=1e-14)


def test_edge_features_are_required(specs):
    with pytest.raises(WiringError, match="'edge_attr'"):
        EdgeNetwork({n: specs[n] for n in ("h", "edges")})
