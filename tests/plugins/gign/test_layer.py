"""``gign`` equals the heterogeneous interaction layer of the paper, written as loops over edges."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.gign.layer import GIGN
from torch.nn.functional import leaky_relu, silu


def one_edge_type(layer: GIGN, h: torch.Tensor, index: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
    """Compute one term of the layer, edge by edge."""
    summed = list(h)
    for (j, i), row in zip(index.t().tolist(), e, strict=True):
        summed[i] = summed[i] + h[j] * silu(layer.filter.weight @ row + layer.filter.bias)
    x = leaky_relu(torch.stack(summed) @ layer.linear.weight.t() + layer.linear.bias)
    if isinstance(layer.norm, torch.nn.BatchNorm1d):
        return (x - layer.norm.running_mean) / (layer.norm.running_var + 1e-5).sqrt()
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("degree", [None, 3])
def test_sum_of_two_edge_types_equals_loops_over_edges(scene, specs, agree, float64, norm, degree):
    bonds, contacts = scene(degree=degree), scene(degree=2)
    fields = {n: specs[n] for n in ("h", "edges", "edge_attr")}
    bonded, in_contact = (GIGN(fields, dim=7, norm=norm).eval() for _ in range(2))
    if norm == "batch":
        bonded.norm.running_mean.normal_()
        in_contact.norm.running_var.uniform_(0.5, 2.0)
    h, e = bonds.f["h"].requires_grad_(), bonds.f["edge_attr"].requires_grad_()
    other = contacts.f["edge_attr"]

    def ours():
        first = bonded(bonds.inputs(bonded.fields, h=h, edge_attr=e))["h"]
        return first + in_contact(contacts.inputs(in_contact.fields, h=h, edge_attr=other))["h"]

    def loops():
        return one_edge_type(bonded, h, bonds.index, e) + one_edge_type(in_contact, h, contacts.index, other)

    agree(ours, loops, [h, e], tol=1e-11)


def test_node_without_neighbors_keeps_its_own_features(scene, specs, float64):
    s = scene()
    layer = GIGN({n: specs[n] for n in ("h", "edges", "edge_attr")}, dim=5).eval()
    alone = torch.bincount(s.index[1], minlength=s.num_nodes) == 0
    assert alone.any()
    out = layer(s.inputs(layer.fields))["h"]
    expected = layer.norm(leaky_relu(layer.linear(s.f["h"])))
    torch.testing.assert_close(out[alone], expected[alone], rtol=1e-12, atol=1e-12)
