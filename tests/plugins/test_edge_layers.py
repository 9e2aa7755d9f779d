"""Edge layers of families with many options: batch = singles, and edges of unknown degree."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.gat import GAT
from protgraph_plugins.mpnn import MPNN

from tests.nn.test_layers import run

# name: (class, what is wired, options)
LAYERS = {
    "gat1": (GAT, ("h", "edges", "edge_attr"), {"dim": 8, "version": 1}),
    "gat2": (GAT, ("h", "edges", "edge_attr"), {"dim": 8}),
    "gat2_no_loops": (GAT, ("h", "edges"), {"dim": 8, "self_loops": False}),
    "mpnn_gru": (MPNN, ("h", "edges", "edge_attr"), {"dim": 12, "update": "gru", "aggregate": "mean"}),
    "mpnn_max": (MPNN, ("h", "edges"), {"dim": 8, "aggregate": "max"}),
    "mpnn_sum": (MPNN, ("h", "edges", "edge_attr"), {"dim": 8}),
}


def build(name, specs):
    torch.manual_seed(0)
    kind, reads, options = LAYERS[name]
    return kind({n: specs[n] for n in reads}, **options)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("degree", [None, 3])
def test_batch_equals_singles(scene, specs, float64, name, degree):
    layer, s = build(name, specs), scene(degree=degree)
    singles = [run(layer, s.single(b)[0]) for b in range(len(s.sizes))]
    torch.testing.assert_close(run(layer, s), torch.cat(singles), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_edges_of_unknown_degree_give_the_same_values(scene, specs, agree, float64, name):
    layer, s = build(name, specs), scene(degree=4)
    h = s.f["h"].requires_grad_()
    wrt = [h, *layer.parameters()]
    agree(
        lambda: run(layer, s, edges=s.edges()),
        lambda: run(layer, s, edges=s.edges(degree=False)),
        wrt,
        tol=1e-12,
    )
