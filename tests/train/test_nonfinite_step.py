"""A loss or gradient that is not finite stops training with step, proteins and layer, and the step can be repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import protgraph as pg
from protgraph.errors import ComponentError, DatasetError, NonFiniteError
from protgraph.labels.loading import resolve_task
from protgraph.task import cross_entropy
from protgraph.train import fit
from protgraph.train.gradients import GradientWatch
from protgraph.train.saved_step import replay_step
from tests.train.conftest import tiny_spec


class BadGradient(torch.autograd.Function):
    """Identity whose gradient is infinite in one row after some calls."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        BadGradient.calls += 1
        gradient = gradient.clone()
        if BadGradient.calls > 3:
            gradient[0] = torch.inf
        return gradient


def register_layer(name, function):
    @pg.layers.register(name)
    class Faulty(pg.GraphLayer):
        """Layer with a fault."""

        reads = ("h",)
        writes = ("h",)

        def __init__(self, in_irreps):
            super().__init__(in_irreps)
            self.linear = nn.Linear(16, 16)
            self.out = {"h": in_irreps["h"]}

        def forward(self, f):
            return {"h": function(self.linear(f["h"]), self)}


def with_layer(name):
    spec = tiny_spec(0.2)
    return replace(spec, layers=[*spec.layers, pg.component(name)])


def nan_after_four(h, layer):
    layer.calls = getattr(layer, "calls", 0) + 1
    if layer.training and layer.calls > 4:
        return torch.cat([h[:1] * torch.nan, h[1:]])
    return h


def test_a_layer_that_gives_nan_later_is_named_with_step_and_protein(small, quick, tmp_path):
    register_layer("faulty", nan_after_four)
    with pytest.raises(NonFiniteError, match=r"layers\[5\] \(faulty\).*layer 'faulty'") as caught:
        fit(with_layer("faulty"), small, "helix", config=quick, run_dir=tmp_path / "run")
    error = caught.value
    assert isinstance(error, ComponentError)
    assert (error.kind, error.name, error.step) == ("layer", "faulty", 3)
    assert len(error.proteins) == 1  # the row belongs to the first protein of the batch
    assert error.folder == str(tmp_path / "run" / "nonfinite_step")


def test_a_gradient_stops_before_the_weights_change_and_is_repeated(small, quick, tmp_path, run):
    BadGradient.calls = 0
    register_layer("faulty", lambda h, layer: BadGradient.apply(h))
    with pytest.raises(NonFiniteError, match=r"gradient in the backward pass of layers\[5\] \(faulty\)") as caught:
        fit(with_layer("faulty"), small, "helix", config=quick, run_dir=tmp_path / "run")
    assert caught.value.step == 3
    replay = replay_step(tmp_path / "run")
    assert replay.cause == "the gradient in the backward pass of layers[5] (faulty)"
    assert replay.saved["proteins"] == list(caught.value.proteins)
    *_, layer, head = replay.traces
    assert 0 < head.gradient < 1e3 and layer.parameter_gradient == torch.inf
    assert replay_step(tmp_path / "run" / "nonfinite_step" / "step.safetensors") == replay

    shown = run("replay", tmp_path / "run")
    assert shown.code == 1
    assert "not finite first: the gradient in the backward pass of layers[5] (faulty)" in shown.out

    BadGradient.calls = -100  # the fault is repaired
    assert run("replay", tmp_path / "run").code == 0


def overflow(logits, y):
    return cross_entropy(logits, y) * torch.inf


def test_a_loss_that_is_infinite_names_the_loss(small, tiny, quick, tmp_path):
    task = replace(resolve_task("helix", small), loss=overflow)
    with pytest.raises(NonFiniteError, match="the gradient of the loss with respect to the logits"):
        fit(tiny, small, task, config=quick, run_dir=tmp_path / "run")
    assert replay_step(tmp_path / "run").cause == "the gradient of the loss with respect to the logits"


def test_nothing_is_written_without_a_folder_of_the_run(small, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    register_layer("faulty", nan_after_four)
    with pytest.raises(NonFiniteError) as caught:
        fit(with_layer("faulty"), small, "helix", config=quick)
    assert caught.value.folder == "" and not list(tmp_path.iterdir())


def test_a_folder_without_a_step_is_an_error(tmp_path, run):
    with pytest.raises(DatasetError, match="no saved training step"):
        replay_step(tmp_path)
    assert run("replay", tmp_path).code == 2


def test_a_damaged_step_is_an_error(small, quick, tmp_path):
    register_layer("faulty", nan_after_four)
    with pytest.raises(NonFiniteError):
        fit(with_layer("faulty"), small, "helix", config=quick, run_dir=tmp_path)
    (tmp_path / "nonfinite_step" / "step.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(DatasetError, match="step.safetensors is damaged"):
        replay_step(tmp_path)


def test_usual_training_has_no_notes_about_gradients(trained):
    assert not any("gradient" in note or "does not depend" in note for note in trained.notes)


def test_a_parameter_without_effect_is_noted_once(small, quick):
    register_layer("faulty", lambda h, layer: h.detach() * 0 + 1.0)
    notes = fit(with_layer("faulty"), small, "helix", config=quick).notes
    (note,) = [note for note in notes if note.startswith("the loss does not depend on")]
    assert "layers.0" in note


def test_a_dead_layer_is_noted(small, quick):
    register_layer("faulty", lambda h, layer: torch.relu(h - 1e4))
    notes = fit(with_layer("faulty"), small, "helix", config=quick).notes
    (note,) = [note for note in notes if "was 0 in all of the first" in note]
    assert note.startswith("the gradient of")


def named_gradient(value):
    parameter = nn.Parameter(torch.zeros(3))
    parameter.grad = torch.tensor([value, 0.0, 0.0])
    return [("w", parameter)]


def test_an_exploding_norm_is_noted_once():
    watch = GradientWatch()
    for step, value in enumerate([*[1.0, 2.0] * 15, 5000.0, 1.0, 9000.0]):
        watch.check_size(float(watch.update(named_gradient(value))), step)
    assert len(watch.notes) == 1
    assert "5e+03 in step 30" in watch.notes[0]


def test_the_norm_is_that_of_the_whole_gradient():
    watch = GradientWatch()
    parameters = [*named_gradient(3.0), *[("v", named_gradient(-4.0)[0][1])]]
    assert float(watch.update(parameters)) == 5.0
    assert float(GradientWatch().update([])) == 0.0
