"""Faults of layers and heads name the component, its place in the model and the line."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from torch import nn

import protgraph as pg
from protgraph.errors import ComponentError, WiringError
from protgraph.testing.protein_fixtures import make_protein

TARGET = pg.Target("t", "node", "classification", 3, head="faulty_head")
SPEC = pg.ModelSpec("test", (), [pg.component("embed", reads=["aatype"], dim=8), "faulty_layer"])


class FaultyLayer(pg.GraphLayer):
    """Returns whatever a test sets."""

    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
        return self.gives(f, f["h"])

    @staticmethod
    def gives(f, h):
        return {"h": h}


class FaultyHead(pg.Head):
    """Linear map, of which a test changes the result."""

    reads = ("h",)

    def __init__(self, fields, target):
        super().__init__(fields, target)
        self.linear = nn.Linear(self.scalar_width("h"), target.size)
        self.declare(logits=f"{target.size}x0e")

    def forward(self, f):
        return {"logits": self.gives(self.linear(f["h"]))}

    @staticmethod
    def gives(logits):
        return logits


@pytest.fixture(autouse=True)
def _registered():
    pg.layers.register("faulty_layer", FaultyLayer)
    pg.heads.register("faulty_head", FaultyHead)


@pytest.fixture
def run():
    """Return a function that runs a new model on a protein of eight residues."""

    def call():
        model = pg.build_model(SPEC, TARGET, seed=0)
        return model(model.plan.precompute(make_protein((8,))))

    return call


@pytest.mark.parametrize(
    ("given", "cause", "words"),
    [
        (lambda f, h: {"hh": h}, None, "returns the fields hh"),
        (lambda f, h: None, None, "returns None"),
        (lambda f, h: h, None, "returns a Tensor"),
        (lambda f, h: {"h": 3}, None, "'h' as a int"),
        (lambda f, h: {"h": h[1:]}, None, r"'h' of shape \(7, 8\).*\(8, 8\)"),
        (lambda f, h: {"h": h.repeat(1, 2)}, None, r"'h' of shape \(8, 16\).*\(8, 8\)"),
        (lambda f, h: (torch.set_grad_enabled(False), {"h": h})[1], None, "gradient mode"),
        (lambda f, h: {"h": h + f["pos"]}, KeyError, "KeyError: 'pos'"),
        (lambda f, h: {"h": h @ h[1:]}, RuntimeError, "RuntimeError: "),
        (lambda f, h: sys.exit(5), SystemExit, r"calls sys.exit\(5\)"),
    ],
)
def test_a_fault_of_a_layer_names_layer_place_and_line(run, given, cause, words, monkeypatch):
    monkeypatch.setattr(FaultyLayer, "gives", staticmethod(given))
    with pytest.raises(ComponentError, match=words) as raised:
        run()
    error = raised.value
    assert (error.kind, error.name, error.source) == ("layer", "faulty_layer", "this session")
    assert "layers[1] of model 'test'" in str(error) and error.location in str(error)
    assert re.fullmatch(r".*test_run_layer.py:\d+", error.location)
    assert error.__cause__ is None if cause is None else isinstance(error.__cause__, cause)
    assert torch.is_grad_enabled()


def test_interrupts_and_errors_of_protgraph_pass_a_layer_unchanged(run, monkeypatch):
    for error in (KeyboardInterrupt(), WiringError("own"), MemoryError(), torch.OutOfMemoryError("full")):

        def fail(f, h, error=error):
            raise error

        monkeypatch.setattr(FaultyLayer, "gives", staticmethod(fail))
        with pytest.raises(type(error)) as raised:
            run()
        assert raised.value is error


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda x: x[1:], r"'logits' of shape \(7, 3\).*\(8, 3\)"),
        (lambda x: x[:, :2], r"'logits' of shape \(8, 2\).*\(8, 3\)"),
        (lambda x: x[0, 0] / 0 * x.undefined, "AttributeError"),
    ],
)
def test_a_fault_of_a_head_names_the_head(run, given, words, monkeypatch):
    monkeypatch.setattr(FaultyHead, "gives", staticmethod(given))
    with pytest.raises(ComponentError, match=words) as raised:
        run()
    assert (raised.value.kind, raised.value.name) == ("head", "faulty_head")


def test_a_head_of_fixed_width_is_refused_when_the_model_is_built(monkeypatch):
    declare = FaultyHead.declare
    monkeypatch.setattr(FaultyHead, "declare", lambda self, **_: declare(self, logits="7x0e"))
    with pytest.raises(WiringError, match=f"'faulty_head'.* 7 .*{TARGET.name!r}.* {TARGET.size}"):
        pg.build_model(SPEC, TARGET)


def test_a_head_that_declares_nothing_is_refused_when_the_model_is_built(monkeypatch):
    monkeypatch.setattr(FaultyHead, "declare", lambda self, **_: None)
    with pytest.raises(WiringError, match="'faulty_head' declares no logits"):
        pg.build_model(SPEC, TARGET)
