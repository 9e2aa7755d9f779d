"""Tests of the constraints with which ``make test-lowest`` installs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.lowest_versions import lowest_versions

ROOT = Path(__file__).resolve().parents[2]


def test_each_dependency_has_its_lowest_allowed_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    done = subprocess.run([sys.executable, "tools/lowest_versions.py"], cwd=ROOT, capture_output=True, text=True)
    constraints = [Requirement(line) for line in done.stdout.splitlines()]
    dependencies = [Requirement(line) for line in project["dependencies"]]
    assert [c.name for c in constraints] == [d.name for d in dependencies]
    for constraint, dependency in zip(constraints, dependencies, strict=True):
        (pin,) = constraint.specifier
        assert pin.operator == "==" and f">={pin.version}" in {str(bound) for bound in dependency.specifier}
        assert str(constraint.marker) == str(dependency.marker)


@pytest.mark.parametrize("dependency", ["numpy", "numpy<3", "numpy==2.0"])
def test_a_dependency_without_a_lower_bound_is_an_error(dependency):
    with pytest.raises(ValueError, match=dependency):
        lowest_versions([dependency])
