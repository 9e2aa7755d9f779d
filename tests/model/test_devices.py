"""Models with compiled layers equal those without; layers that cannot be compiled are named."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.model import ModelSpec, build_model, compile_layers, uncompile_layers, uncompiled_layers
from protgraph.registry.component import component
from protgraph.testing import find_components
from protgraph.testing.checks.compiled import compiled_error
from protgraph.testing.runner import Runner

TARGET = Target("type", "node", "classification", 3)


@pytest.mark.slow
def test_a_model_with_compiled_layers_is_the_same_model(structures_dir):
    model = build_model("gcn", TARGET, seed=0).eval()
    graphs = [
        model.plan.precompute(pg.clean(pg.load_structure(structures_dir / f"{e}.bcif"))) for e in ("1crn", "1vii")
    ]
    batches = [collate(graphs[:1]), collate(graphs)]
    with torch.no_grad():
        expected, names = [model(batch)["logits"] for batch in batches], list(model.state_dict())
        compile_layers(model, backend="eager")
        assert all(layer._compiled_call_impl for layer in model.layers)
        with torch._dynamo.config.patch(error_on_recompile=True):
            got = [model(batch)["logits"] for batch in batches]
        uncompile_layers(model)
        assert not any(layer._compiled_call_impl for layer in model.layers)
    assert list(model.state_dict()) == names
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_graph_without_gradients_follows_that_with_gradients(structures_dir):
    """Torch 2.13 cannot compile a second graph that reads only the device of a view of another input."""
    layers = [
        component("embed", reads=["relative_position"], dim=8, writes={"h": "edge_attr"}),
        component("proteinmpnn_encoder", dim=8),
    ]
    model = build_model(ModelSpec("x", ["backbone_knn", "relative_position"], layers), TARGET, seed=0)
    graphs = [
        model.plan.precompute(pg.clean(pg.load_structure(structures_dir / f"{e}.bcif"))) for e in ("1crn", "1vii")
    ]
    first, second = (collate([graph]) for graph in graphs)
    with torch.no_grad():
        expected = model.eval()(second)["logits"]
    compile_layers(model, backend="aot_eager")
    model(first)["logits"].sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(model(second)["logits"], expected)
    uncompile_layers(model)


def test_layers_that_are_not_compiled_are_named_with_their_reason():
    model = build_model("bert", TARGET, seed=0)
    (left,) = uncompiled_layers(model)
    assert "(encoder)" in left and "host" in left
    compile_layers(model, backend="eager")
    assert [layer._compiled_call_impl is None for layer in model.layers].count(True) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcn", "egnn"])
def test_generated_code_gives_the_same_values_and_gradients(name):
    (component,) = find_components(name, kind="layer")
    runner = Runner(component)
    assert compiled_error(runner, runner.wirings[0], backend="inductor", limit=1e-10) <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gcn", "egnn"])
def test_training_with_compiled_layers_has_the_same_losses(family, structures_dir):
    entries = ("1crn", "1vii", "1ubq", "1fas", "1bo0", "134l", "1ajj", "1rx4")
    files = [structures_dir / f"{entry}.bcif" for entry in entries]
    plain = pg.FitConfig(epochs=2, device="cpu")
    losses = []
    for config in (plain, dataclasses.replace(plain, compile=True)):
        with torch._inductor.config.patch(fallback_random=True):  # dropout draws the numbers that it draws without
            result = pg.fit(family, files, "secondary_structure", config=config)
        losses.append([point["train_loss"] for point in result.history])
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
