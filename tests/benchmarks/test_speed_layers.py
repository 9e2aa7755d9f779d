"""Layers of the package and of the plugins are measured beside a second implementation with the same weights."""

from __future__ import annotations

import torch

from benchmarks import speed_layers
from benchmarks.layer_case import SpeedCase


def test_both_implementations_of_each_layer_agree(monkeypatch):
    monkeypatch.setattr(speed_layers, "RESIDUES", 12)
    monkeypatch.setattr(speed_layers, "DEGREE", 4)
    cases = speed_layers.layer_cases()
    assert {"gat", "egnn", "gearnet", "gearnet_edge", "context_atom_encoder"} <= set(cases)
    for make in cases.values():
        case = make(speed_layers.layer_inputs())
        assert isinstance(case, SpeedCase)
        torch.testing.assert_close(case.ours(case.x), case.theirs(case.x), rtol=1e-5, atol=1e-5)
