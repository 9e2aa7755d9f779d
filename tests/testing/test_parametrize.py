"""The decorator in the test file of a third-party plugin, run by a separate pytest process."""

from __future__ import annotations

import subprocess
import sys

LAYER = '''
import math

import torch
import protgraph as pg


@pg.layers.register("third_party")
class ThirdParty(pg.GraphLayer):
    """h' = W h + mean_j U h_j"""

    reads, writes = ("h", "edges"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        self.own = torch.nn.Linear(self.scalar_width("h"), dim)
        self.other = torch.nn.Linear(self.scalar_width("h"), dim)
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        edges = f["edges"]
        return {"h": self.own(f["h"]) + edges.mean(edges.source(self.other(f["h"])))}


class Random(ThirdParty):
    # Another result in every call, by a rule: with random numbers, a check could pass by chance.

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields, dim=dim)
        self.calls = 0

    def forward(self, f):
        self.calls += 1
        return {"h": super().forward(f)["h"] + math.sin(self.calls)}


class Excused(Random):
    conformity = pg.data.Conformity(expected_failures={
        "rotation": "it is random", "node_order": "it is random", "edge_order": "it is random",
        "batch_equals_singles": "it is random", "state_dict": "it is random", "seed": "it is random",
        "float32": "it is random", "reflection": "it is random",
    })


class Pessimist(ThirdParty):
    conformity = pg.data.Conformity(expected_failures={"finite": "it may overflow"})


@pg.testing.parametrize_with_checks(%s)
def test_conformity(component, check):
    check(component)
'''


def run(tmp_path, what: str) -> str:
    (tmp_path / "test_third_party.py").write_text(LAYER % what)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rxf", "test_third_party.py"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout


def test_a_third_party_layer_passes_by_name_and_by_class(tmp_path):
    out = run(tmp_path, '["third_party", ThirdParty]')
    assert "failed" not in out.splitlines()[-1] and (
        "36 passed" in out or "38 passed" in out
    )  # 18 checks each; the one on CUDA is skipped or passes


def test_failures_name_component_check_and_reason(tmp_path):
    out = run(tmp_path, "Random")
    assert "FAILED test_third_party.py::test_conformity[layer-Random-seed]" in out
    assert "layer Random" in out


def test_expected_failures_are_xfails_with_their_reason(tmp_path):
    out = run(tmp_path, "Excused")
    assert "XFAIL test_third_party.py::test_conformity[layer-Excused-seed] - it is random" in out
    assert " 8 xfailed" in out.splitlines()[-1] and " failed" not in out.splitlines()[-1]


def test_an_expected_failure_that_passes_fails(tmp_path):
    out = run(tmp_path, "Pessimist")
    assert "test_conformity[layer-Pessimist-finite]" in out and "1 failed" in out.splitlines()[-1]
