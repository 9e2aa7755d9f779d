"""``graph_transformer`` equals PyG's TransformerConv; its recorded attention weights are those of the forward pass."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.graph_transformer import GraphTransformer
from torch_geometric.nn import TransformerConv

from protgraph.nn import AttentionRecorder


@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("with_edges", [False, True])
def test_graph_transformer_equals_pyg(scene, specs, agree, float64, beta, degree, with_edges):
    s = scene(degree=degree)
    names = ("h", "edges", "edge_attr") if with_edges else ("h", "edges")
    ours = GraphTransformer({n: specs[n] for n in names}, dim=16, heads=4, beta=beta)
    theirs = TransformerConv(12, 4, heads=4, beta=beta, edge_dim=5 if with_edges else None)
    for part, name in enumerate(("lin_query", "lin_key", "lin_value")):
        getattr(theirs, name).weight.data = ours.qkv.weight.data[16 * part : 16 * (part + 1)]
        getattr(theirs, name).bias.data = ours.qkv.bias.data[16 * part : 16 * (part + 1)]
    theirs.lin_skip.load_state_dict(ours.root.state_dict())
    if beta:
        theirs.lin_beta.load_state_dict(ours.beta.state_dict())
    h = s.f["h"].requires_grad_()
    wrt, attr = [h], None
    if with_edges:
        theirs.lin_edge.load_state_dict(ours.edge.state_dict())
        attr = s.f["edge_attr"].requires_grad_()
        wrt.append(attr)
    agree(lambda: ours(s.inputs(names))["h"], lambda: theirs(h, s.index, attr), wrt, tol=1e-12)


def test_recorded_weights_reproduce_a_graph_transformer(scene, specs, float64):
    fields = {n: specs[n] for n in ("h", "edges")}
    s, layer = scene(), GraphTransformer(fields, dim=8, heads=2)
    f = s.inputs(("h", "edges"))
    with AttentionRecorder(layer) as recorder:
        out = layer(f)["h"]
    v = layer.qkv(f["h"]).unflatten(1, layer.shape).unbind(1)[2]
    blocks = [part for part, _ in recorder.weights[""][0].dense(s.proteins())]
    weights = torch.stack([torch.block_diag(*heads) for heads in zip(*blocks, strict=True)])  # (H, N, N)
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v).flatten(1) + layer.root(f["h"]), out, atol=1e-12)
