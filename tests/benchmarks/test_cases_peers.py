"""Layers equal those of other packages with the same weights, in values and gradients."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from benchmarks import cases_peers, speed_layers

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("module", sorted(cases_peers._PEERS))
def test_a_layer_equals_that_of_the_package(module, monkeypatch):
    if not find_spec(module):
        pytest.skip(f"the package of a layer is not installed: {module} (pyproject.toml, peers)")
    monkeypatch.setattr(speed_layers, "RESIDUES", 12)
    monkeypatch.setattr(speed_layers, "DEGREE", 4)
    monkeypatch.setattr(speed_layers, "PROTEINS", 2)
    inputs = speed_layers.layer_inputs()
    inputs = replace(inputs, pos=inputs.pos.double())
    name, make = cases_peers._PEERS[module]
    torch.manual_seed(0)
    case = make(inputs)
    ours, theirs = case.ours(case.x), case.theirs(case.x)
    cotangent = torch.randn_like(ours)
    (dx,), (expected,) = (torch.autograd.grad(y, [case.x], cotangent) for y in (ours, theirs))
    for a, b in ((ours, theirs), (dx, expected)):
        assert b.abs().max() > 0
        assert (a - b).abs().max() <= 1e-12 * b.abs().max(), name


def test_packages_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(cases_peers, "find_spec", lambda name: None)
    assert set(cases_peers.missing_peers()) == set(cases_peers._PEERS)
