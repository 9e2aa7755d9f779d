"""Layers of plugins are measured beside the built-in ones, through entry points."""

from __future__ import annotations

import torch

from benchmarks import layers
from benchmarks.case import SpeedCase


def test_plugins_offer_layers_to_be_measured(monkeypatch):
    monkeypatch.setattr(layers, "RESIDUES", 12)
    monkeypatch.setattr(layers, "DEGREE", 4)
    assert {"gearnet", "gearnet_edge", "context_atom_encoder"} <= set(layers.CASES)
    for name in layers.CASES:
        case = layers.CASES.get(name)(layers._scene())
        assert isinstance(case, SpeedCase)
        torch.testing.assert_close(case.ours(case.x), case.theirs(case.x), rtol=1e-5, atol=1e-5)
