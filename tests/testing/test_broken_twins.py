"""The suite itself is tested: each broken twin has one typical defect, and the check for it finds it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from protgraph.testing import CHECKS, check_component, find_components
from protgraph.testing.runner import Runner
from protgraph.testing.suite import run_check

GROUPS = ("form", "state", "symmetry", "order", "learning", "structure", "device", "compile")
GROUPS += ("gradient", "size", "training", "option")


sys.path.append(str(Path(__file__).parent))  # also of the processes that this one starts
TWINS = importlib.import_module("honest_twins")
for group in GROUPS:
    importlib.import_module(f"{group}_twins")
ON_CUDA_ONLY = {"cuda"}
PAGE = Path(__file__).parents[2] / "docs" / "conformity.md"
MARK = "<!-- table -->\n"
#: The check on a GPU runs neither the backward pass nor featurizers, and lets an output be on the CPU.
NOT_ON_CUDA = {"ReadsAnItemInBackward", "FeaturizerThatCountsOnTheHost", "OutputOnTheCpu"}
DEVICE_TWINS = [cls for cls, (name, _) in TWINS.BROKEN.items() if name == "device"]


def table_of_twins() -> str:
    """Return a row for each check of featurizers, layers, heads and models with the number of its broken twins."""
    lines = ["| check | claim | broken components |", "|---|---|---:|"]
    for check in CHECKS:
        number = sum(name == check.name for name, _ in TWINS.BROKEN.values())
        if number:
            claim = check.claim.removeprefix("Check that ").removeprefix("Check ").replace("``", "`")
            lines.append(f"| `{check.name}` | {claim} | {number} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_every_broken_twin():
    assert PAGE.read_text(encoding="utf-8").partition(MARK)[2].strip() == table_of_twins().strip()


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS.HONEST, ids=lambda c: c.__name__)
def test_an_honest_twin_passes_every_check(twin):
    (component,) = find_components(twin)
    assert [report for report in check_component(component) if not report.ok] == []


@pytest.mark.parametrize("twin", TWINS.BROKEN, ids=lambda c: c.__name__)
def test_broken_twin_is_caught(twin):
    (component,) = find_components(twin)
    runner = Runner(component)
    name, first = TWINS.BROKEN[twin]
    checks = [c for c in CHECKS if component.kind in c.kinds]
    up_to_this = checks[: [c.name for c in checks].index(name) + 1]
    failed = [c.name for c in up_to_this if run_check(c, runner).status == "failed"]
    assert failed[0] == first
    assert failed[-1] == name


def test_every_check_has_a_broken_twin():
    own = {c.name for c in CHECKS if set(c.kinds) - {"task", "dataset", "metric", "reader", "command"}}
    assert own - {name for name, _ in TWINS.BROKEN.values()} <= ON_CUDA_ONLY


@pytest.mark.parametrize("twin", DEVICE_TWINS, ids=lambda c: c.__name__)
def test_the_device_check_names_the_line(twin):
    """The message has the file and the code of the fault, not only torch's error."""
    (component,) = find_components(twin)
    message = run_check(next(c for c in CHECKS if c.name == "device"), Runner(component)).message
    assert "_twins.py:" in message or "'update'" in message


@pytest.mark.cuda
@pytest.mark.parametrize("twin", [t for t in DEVICE_TWINS if t.__name__ not in NOT_ON_CUDA], ids=lambda c: c.__name__)
def test_broken_twin_on_cuda_is_caught(twin):
    (component,) = find_components(twin)
    assert {report.check: report.status for report in check_component(component)}["cuda"] == "failed"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{text[0]}{MARK}\n{table_of_twins()}", encoding="utf-8")
