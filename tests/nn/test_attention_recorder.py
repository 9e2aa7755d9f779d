"""Recorded attention weights are those of the forward pass; without a recorder nothing is kept."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.esm.encoder import Encoder

from protgraph.nn.attention_recorder import AttentionMixin, AttentionRecorder, EdgeWeights, PairWeights
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.layers.transformer import PreNormBlock, Transformer
from protgraph.ops import Proteins

pytestmark = pytest.mark.usefixtures("float64")


def dense(weights, proteins):
    """``(H, N, N)``, zero between proteins."""
    blocks = [w for w, _ in weights.dense(proteins)]
    return torch.stack([torch.block_diag(*heads) for heads in zip(*blocks, strict=True)])


@pytest.mark.parametrize("causal", [False, True])
def test_recorded_weights_reproduce_dot_product_attention(scene, causal):
    proteins, attention = scene().proteins(), DotProductAttention(causal=causal)
    q, k, v = (torch.randn(21, 2, 5) for _ in range(3))
    with AttentionRecorder(attention) as recorder:
        out = attention(q, k, v, proteins)
    weights = dense(recorder.weights[""][0], proteins)
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v), out, atol=1e-12)


def test_recorded_weights_reproduce_a_transformer(scene, specs):
    s, layer = scene(), Transformer(specs, dim=8, heads=2)
    f = s.inputs(("h", "proteins"))
    with AttentionRecorder(layer) as recorder:
        out = layer(f)["h"]
    v = layer.qkv(f["h"]).unflatten(1, layer.shape).unbind(1)[2]
    weights = dense(recorder.weights["attention"][0], f["proteins"])
    assert torch.allclose(torch.einsum("hij,jhc->ihc", weights, v).flatten(1) + layer.root(f["h"]), out, atol=1e-12)


def test_submodules_are_recorded_by_path_and_in_order_of_calls(scene, specs):
    s, encoder = scene(), Encoder({n: specs[n] for n in ("aatype", "seq_pos", "proteins")}, dim=8, heads=2, depth=2)
    with AttentionRecorder(encoder) as recorder:
        encoder(s.inputs(("aatype", "seq_pos", "proteins")))
        encoder(s.inputs(("aatype", "seq_pos", "proteins")))
    assert list(recorder.weights) == ["blocks.0.attention.attention", "blocks.1.attention.attention"]
    assert [len(calls) for calls in recorder.weights.values()] == [2, 2]
    first = recorder.weights["blocks.0.attention.attention"][0]
    assert [tuple(w.shape) for w in first.maps] == [(2, n + 2, n + 2) for n in s.sizes]


def test_recording_ends_with_the_context_even_after_an_error(scene, specs):
    block = PreNormBlock({n: specs[n] for n in ("h", "proteins")}, heads=2)
    parts = [part for part in block.modules() if isinstance(part, AttentionMixin)]
    with pytest.raises(RuntimeError, match="stop"), AttentionRecorder(block) as recorder:
        assert all(part.is_recording for part in parts)
        raise RuntimeError("stop")
    assert len(parts) == 1 and not any(part.is_recording for part in parts)
    block(scene().inputs(("h", "proteins")))
    assert recorder.weights == {}


def test_edge_weights_become_dense_maps():
    index = torch.tensor([[1, 0, 3], [0, 1, 2]])
    weights = EdgeWeights(index, torch.tensor([[0.25], [0.5], [0.75]]), torch.tensor([[0.75], [0.5], [0.25], [1.0]]))
    (one, visible), (two, _) = weights.dense(Proteins(torch.tensor([0, 0, 1, 1]), (2, 2)))
    assert one.tolist() == [[[0.75, 0.25], [0.5, 0.5]]] and two.tolist() == [[[0.25, 0.75], [0.0, 1.0]]]
    assert visible.tolist() == [[True, True], [True, True]]
    assert PairWeights([one]).dense(Proteins(torch.tensor([0, 0]), (2,)))[0][1] is None
