"""The decorator in the test file of a third-party plugin, run by a separate pytest process."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from protgraph.testing import CHECKS

pytestmark = pytest.mark.slow  # `test_suite` has the same checks in this process

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
        "float32": "it is random", "reflection": "it is random", "compiled": "it is random",
        "memory_layout": "it is random", "gradients": "it is random", "training": "it is random",
        "copies": "it is random",
    })


class Pessimist(ThirdParty):
    conformity = pg.data.Conformity(expected_failures={"finite": "it may overflow"})


@pg.testing.parametrize_with_checks(["third_party", ThirdParty])
def test_own(component, check):
    check(component)


@pg.testing.parametrize_with_checks([Random, Excused, Pessimist])
def test_others(component, check):
    check(component)
'''


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> str:
    """Return the output of one pytest process for all tests of this module; each line of its end is one result.

    The order is fixed: in another one, two instances of ``Random`` may have had as many calls and pass a check.
    """
    folder = tmp_path_factory.mktemp("third_party")
    (folder / "test_third_party.py").write_text(LAYER)
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "-rpxf", "test_third_party.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def results(out: str, *names: str) -> Counter[str]:
    """Count the results, e.g. "PASSED", of the tests whose id contains one of the names."""
    lines = [line.split(" ", 1) for line in out.splitlines() if "test_third_party.py::" in line]
    return Counter(word for word, rest in lines if any(name in rest.split(" - ")[0] for name in names))


def test_a_third_party_layer_passes_by_name_and_by_class(out):
    found = results(out, "::test_own[")
    assert set(found) == {"PASSED"}
    checks = sum("layer" in check.kinds for check in CHECKS)
    # of both components; the layer reads no residue numbers, and the check on CUDA is skipped or passes
    assert found["PASSED"] in (2 * (checks - 2), 2 * (checks - 1))


def test_failures_name_component_check_and_reason(out):
    assert "FAILED test_third_party.py::test_others[layer-Random-seed]" in out
    assert "layer Random" in out


def test_expected_failures_are_xfails_with_their_reason(out):
    assert "XFAIL test_third_party.py::test_others[layer-Excused-seed] - it is random" in out
    found = results(out, "[layer-Excused-")
    assert found["XFAIL"] == 13 and not found["FAILED"]


def test_an_expected_failure_that_passes_fails(out):
    assert "FAILED test_third_party.py::test_others[layer-Pessimist-finite]" in out
    assert results(out, "[layer-Pessimist-")["FAILED"] == 1
