"""Attention maps of a model, layer by layer."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import WiringError
from protgraph.testing.protein_fixtures import make_protein

TARGET = pg.Target("t", "node", "classification", 3)


@pytest.mark.parametrize(
    ("name", "layers", "everywhere"),
    [
        ("transformer", 3, True),
        ("ipa", 3, True),
        ("structure_module", 4, True),
        ("hybrid", 2, True),
        ("bert", 4, True),
        ("gpt", 4, True),
        ("gat", 3, False),
        ("gat.v1", 3, False),
        ("graph_transformer", 3, False),
        ("se3_transformer", 2, False),
    ],
)
def test_maps_are_those_of_each_protein_alone_and_sum_to_1(name, layers, everywhere):
    some = [make_protein((9, 6), seed=1), make_protein((7,), seed=2)]
    model = pg.build_model(name, TARGET, seed=0).double().eval()
    graphs = [model.plan.precompute(r) for r in some]
    both = model.attention(collate(graphs))
    assert len(both) == layers
    for layer, maps in both.items():
        assert [m.weights.size(1) for m in maps] == [15, 7]
        for number, found in enumerate(maps):
            alone = model.attention(graphs[number])[layer][0]
            assert torch.allclose(found.weights, alone.weights, atol=1e-10), layer
            whole = found.weights.sum(2)
            special = "encoder" in layer  # <cls> and <eos> take their share
            assert (whole < 1).all() if special else torch.allclose(whole, torch.ones_like(whole), atol=1e-10), layer
            assert (found.visible is None) == everywhere
            assert everywhere or not found.weights[:, ~found.visible].any()


def test_a_causal_model_does_not_attend_to_later_residues():
    model = pg.build_model("gpt", TARGET, seed=0).eval()
    for (found,) in model.attention(model.plan.precompute(make_protein((9,), seed=1))).values():
        assert not found.weights.triu(1).any() and (found.weights.tril() >= 0).all()


def test_recording_does_not_change_predictions():
    model = pg.build_model("transformer", TARGET, seed=0).eval()
    graph = model.plan.precompute(make_protein((9,), seed=1))
    before = model(graph)["logits"]
    model.attention(graph)
    assert torch.equal(before, model(graph)["logits"])


def test_a_layer_called_twice_has_two_maps():
    class Twice(pg.GraphLayer):
        reads, writes = ("h", "proteins"), ("h",)

        def __init__(self, fields):
            super().__init__(fields)
            self.inner = pg.layers.create("transformer", fields, options={"dim": 8, "heads": 2})
            self.declare(h="8x0e")

        def forward(self, f):
            return self.inner({**f, **self.inner(f)})

    pg.layers.register("attends_twice", Twice)
    graph = pg.ModelSpec("m", layers=[pg.component("embed", reads=["aatype"], dim=8), "attends_twice"])
    model = pg.build_model(graph, TARGET, seed=0)
    maps = model.attention(model.plan.precompute(make_protein((9,), seed=1)))
    assert list(maps) == ["layers[1].inner (attends_twice, call 1)", "layers[1].inner (attends_twice, call 2)"]


def test_a_model_without_attention_is_an_error_that_lists_its_layers():
    model = pg.build_model("gcn", TARGET, seed=0)
    with pytest.raises(WiringError, match="embed, gcn, residual"):
        model.attention(model.plan.precompute(make_protein((7,), seed=2)))
