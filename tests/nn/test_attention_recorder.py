"""What is told is what the forward pass sums with; where nobody listens, nothing is kept."""

from __future__ import annotations

import pytest
import torch

from protgraph.nn.attention_recorder import Attends, EdgeWeights, PairWeights, record
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.layers import GAT, Encoder, GraphTransformer, PreNormBlock, Transformer

pytestmark = pytest.mark.usefixtures("float64")


def dense(told, proteins):
    """``(H, N, N)``, zero between proteins."""
    blocks = [w for w, _ in told.dense(proteins)]
    return torch.stack([torch.block_diag(*heads) for heads in zip(*blocks, strict=True)])


@pytest.mark.parametrize("causal", [False, True])
def test_the_core_tells_its_weights(scene, causal):
    proteins, attention = scene().proteins(), DotProductAttention(causal=causal)
    q, k, v = (torch.randn(21, 2, 5) for _ in range(3))
    with record(attention) as told:
        out = attention(q, k, v, proteins)
    weights = dense(told[""][0], proteins)
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v), out, atol=1e-12)


def test_a_transformer_tells_its_weights(scene, specs):
    s, layer = scene(), Transformer(specs, dim=8, heads=2)
    f = s.inputs(("h", "proteins"))
    with record(layer) as told:
        out = layer(f)["h"]
    v = layer.qkv(f["h"]).unflatten(1, layer.shape).unbind(1)[2]
    weights = dense(told["attention"][0], f["proteins"])
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v).flatten(1) + layer.root(f["h"]), out, atol=1e-12)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("self_loops", [True, False])
def test_gat_tells_its_weights(scene, specs, version, self_loops):
    s, layer = scene(), GAT(specs, dim=8, heads=2, version=version, self_loops=self_loops)
    f = s.inputs(("h", "edges", "edge_attr"))
    with record(layer) as told:
        out = layer(f)["h"]
    x = (layer.score.linear if version == 1 else layer.score.source)(f["h"]).unflatten(1, (2, 4))
    weights = dense(told[""][0], s.proteins())
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, x).flatten(1) + layer.bias, out, atol=1e-12)
    seen = torch.block_diag(*(sees for _, sees in told[""][0].dense(s.proteins())))
    assert int(seen.sum()) == s.index.size(1) + self_loops * s.num_nodes and not weights[:, ~seen].any()


def test_graph_transformer_tells_its_weights(scene, specs):
    fields = {n: specs[n] for n in ("h", "edges")}
    s, layer = scene(), GraphTransformer(fields, dim=8, heads=2)
    f = s.inputs(("h", "edges"))
    with record(layer) as told:
        out = layer(f)["h"]
    v = layer.qkv(f["h"]).unflatten(1, layer.shape).unbind(1)[2]
    weights = dense(told[""][0], s.proteins())
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v).flatten(1) + layer.root(f["h"]), out, atol=1e-12)


def test_parts_are_told_by_path_in_order(scene, specs):
    s, encoder = scene(), Encoder({n: specs[n] for n in ("aatype", "seq_pos", "proteins")}, dim=8, heads=2, depth=2)
    with record(encoder) as told:
        encoder(s.inputs(("aatype", "seq_pos", "proteins")))
        encoder(s.inputs(("aatype", "seq_pos", "proteins")))
    assert list(told) == ["blocks.0.attention.attention", "blocks.1.attention.attention"]
    assert [len(calls) for calls in told.values()] == [2, 2]
    assert [tuple(w.shape) for w in told["blocks.0.attention.attention"][0].proteins] == [(2, n + 2, n + 2)
                                                                                         for n in s.sizes]  # fmt: skip


def test_nobody_is_heard_afterwards(scene, specs):
    block = PreNormBlock({n: specs[n] for n in ("h", "proteins")}, heads=2)
    parts = [part for part in block.modules() if isinstance(part, Attends)]
    with pytest.raises(RuntimeError, match="stop"), record(block) as told:
        assert all(part.is_heard for part in parts)
        raise RuntimeError("stop")
    assert len(parts) == 1 and not any(part.is_heard for part in parts)
    block(scene().inputs(("h", "proteins")))
    assert told == {}


def test_edges_become_a_map():
    from protgraph.ops.edges import Proteins

    index = torch.tensor([[1, 0, 3], [0, 1, 2]])
    told = EdgeWeights(index, torch.tensor([[0.25], [0.5], [0.75]]), torch.tensor([[0.75], [0.5], [0.25], [1.0]]))
    (one, seen), (two, _) = told.dense(Proteins(torch.tensor([0, 0, 1, 1]), (2, 2)))
    assert one.tolist() == [[[0.75, 0.25], [0.5, 0.5]]] and two.tolist() == [[[0.25, 0.75], [0.0, 1.0]]]
    assert seen.tolist() == [[True, True], [True, True]]
    assert PairWeights([one]).dense(Proteins(torch.tensor([0, 0]), (2,)))[0][1] is None
