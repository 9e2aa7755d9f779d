"""The checker is checked: each twin has one defect known from the field, and the check that is for it finds it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from protgraph.testing import CHECKS, check, subjects
from protgraph.testing.suite import verdict
from protgraph.testing.trial import Trial

GROUPS = ("form", "symmetry", "order", "learning", "structure")


def _load(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TWINS = _load("honest_twins")
for group in GROUPS:
    _load(f"{group}_twins")
ON_CUDA_ONLY = {"cuda"}


@pytest.mark.parametrize("component", TWINS.HONEST, ids=lambda c: c.__name__)
def test_an_honest_twin_passes_every_check(component):
    (subject,) = subjects(component)
    assert [result for result in check(subject) if not result.ok] == []


@pytest.mark.parametrize("component", TWINS.BROKEN, ids=lambda c: c.__name__)
def test_broken_twin_is_caught(component):
    (subject,) = subjects(component)
    trial = Trial(subject)
    name, first = TWINS.BROKEN[component]
    chosen = [c for c in CHECKS if subject.kind in c.kinds]
    asked = chosen[: [c.name for c in chosen].index(name) + 1]
    failed = [c.name for c in asked if verdict(c, trial).status == "failed"]
    assert failed[0] == first
    assert failed[-1] == name


def test_every_check_has_a_broken_twin():
    assert {c.name for c in CHECKS} - {name for name, _ in TWINS.BROKEN.values()} <= ON_CUDA_ONLY


class WaitsForTheHost(TWINS.HonestScalars):
    def forward(self, f):
        h = super().forward(f)["h"]
        return {"h": h / float(h.detach().abs().max())}


class LeavesATensorOnTheHost(TWINS.HonestScalars):
    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.scale = torch.linspace(1, 2, dim)

    def forward(self, f):
        return {"h": super().forward(f)["h"] * self.scale}


@pytest.mark.cuda
@pytest.mark.parametrize("component", [WaitsForTheHost, LeavesATensorOnTheHost])
def test_broken_twin_on_cuda_is_caught(component):
    (subject,) = subjects(component)
    assert {result.check: result.status for result in check(subject)}["cuda"] == "failed"
