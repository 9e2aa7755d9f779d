"""``gat`` equals PyG's GATConv and GATv2Conv; its recorded attention weights are those of the forward pass."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.gat import GAT
from torch_geometric.nn import GATConv, GATv2Conv

from protgraph.errors import OptionError
from protgraph.nn import AttentionRecorder

HEADS = 4


def pair(specs, version, *, with_edge, **options):
    given = {n: specs[n] for n in ("h", "edges", *(["edge_attr"] if with_edge else []))}
    ours = GAT(given, dim=16, heads=HEADS, version=version, **options)
    ours.bias.data.normal_()
    concat, loops = options.get("concat", True), options.get("self_loops", True)
    theirs = (GATConv if version == 1 else GATv2Conv)(
        specs["h"].dim,
        16 // HEADS if concat else 16,
        heads=HEADS,
        concat=concat,
        add_self_loops=loops,
        edge_dim=specs["edge_attr"].dim if with_edge else None,
    )
    theirs.bias.data.copy_(ours.bias)
    shared = {"lin": "linear", "att_src": "att_src", "att_dst": "att_dst"}
    if version == 2:
        shared = {"lin_l": "source", "lin_r": "target", "att": "att", **({"lin_edge": "edge"} if with_edge else {})}
    mine = dict(ours.score.named_parameters())
    for name, weight in theirs.named_parameters():
        head, _, tail = name.partition(".")
        if head in shared:
            weight.data.copy_(mine[".".join(filter(None, (shared[head], tail)))].view_as(weight))
    if version == 1 and with_edge:  # their a · W_e e is our a_e · e
        per_head = theirs.lin_edge.weight.view(HEADS, -1, specs["edge_attr"].dim)
        ours.score.att_edge.weight.data.copy_(torch.einsum("hc,hcd->hd", theirs.att_edge[0], per_head))
    return ours, theirs


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("with_edge", [True, False])
@pytest.mark.parametrize("options", [{}, {"concat": False}, {"self_loops": False}], ids=str)
def test_equals_pyg(scene, specs, agree, float64, dtype, tol, version, degree, with_edge, options):
    s = scene(degree=degree)
    ours, theirs = (m.to(dtype) for m in pair(specs, version, with_edge=with_edge, **options))
    h = s.f["h"].to(dtype).requires_grad_()
    e = s.f["edge_attr"].to(dtype).requires_grad_()
    f = s.inputs(ours.fields, h=h, edge_attr=e)
    run = (lambda: ours(f)["h"]), (lambda: theirs(h, s.index, e if with_edge else None))
    agree(*run, [h, e] if with_edge else [h], tol=tol)
    if version == 2:
        weights = (ours.score.source.weight, theirs.lin_l.weight), (ours.score.att, theirs.att)
    else:
        weights = (ours.score.linear.weight, theirs.lin.weight), (ours.score.att_src, theirs.att_src)
    for mine, other in weights:
        a = torch.autograd.grad(run[0]().sin().sum(), mine)[0]
        b = torch.autograd.grad(run[1]().sin().sum(), other)[0].view_as(a)
        assert (a - b).abs().max() <= tol * b.abs().max()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("self_loops", [True, False])
def test_large_logits_stay_finite(scene, specs, version, self_loops):
    s = scene()
    layer = GAT({n: specs[n] for n in ("h", "edges")}, dim=16, version=version, self_loops=self_loops)
    h = (1e4 * s.f["h"]).requires_grad_()
    out = layer(s.inputs(layer.fields, h=h))["h"]
    out.sum().backward()
    assert torch.isfinite(out).all() and torch.isfinite(h.grad).all()


def test_dropout_leaves_out_coefficients_only_in_training(scene, specs):
    s = scene()
    layer = GAT({n: specs[n] for n in ("h", "edges")}, dim=16, dropout=0.5)
    f = s.inputs(layer.fields)
    assert not torch.equal(layer(f)["h"], layer(f)["h"])
    layer.eval()
    assert torch.equal(layer(f)["h"], layer(f)["h"])


def test_invalid_options_are_errors(specs):
    with pytest.raises(OptionError, match="dim=10.*heads=4"):
        GAT(specs, dim=10)
    with pytest.raises(OptionError, match="version=3"):
        GAT(specs, version=3)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("self_loops", [True, False])
def test_recorded_weights_reproduce_gat(scene, specs, float64, version, self_loops):
    s, layer = scene(), GAT(specs, dim=8, heads=2, version=version, self_loops=self_loops)
    f = s.inputs(("h", "edges", "edge_attr"))
    with AttentionRecorder(layer) as recorder:
        out = layer(f)["h"]
    x = (layer.score.linear if version == 1 else layer.score.source)(f["h"]).unflatten(1, (2, 4))
    recorded = recorder.weights[""][0]
    blocks = [part for part, _ in recorded.dense(s.proteins())]
    weights = torch.stack([torch.block_diag(*heads) for heads in zip(*blocks, strict=True)])  # (H, N, N)
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, x).flatten(1) + layer.bias, out, atol=1e-12)
    visible = torch.block_diag(*(part for _, part in recorded.dense(s.proteins())))
    assert int(visible.sum()) == s.index.size(1) + self_loops * s.num_nodes and not weights[:, ~visible].any()
