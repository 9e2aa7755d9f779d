"""Every extension can be removed: the core imports, lists its components and prints its help without it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_tool() -> ModuleType:
    path = ROOT / "tools" / "without_extension.py"
    spec = importlib.util.spec_from_file_location("without_extension", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOL.extensions())
def test_the_core_does_without_the_extension(name: str, tmp_path: Path) -> None:
    assert TOOL.problems_without(name, tmp_path / "copy") == []


@pytest.mark.slow
def test_the_components_of_a_removed_extension_are_not_listed(tmp_path: Path) -> None:
    environment = TOOL.copy_without("foldcomp", tmp_path / "copy")
    assert not (tmp_path / "copy" / "plugins" / "foldcomp").exists()
    info = next((tmp_path / "copy" / ".packages").glob("*.dist-info"))
    points = (info / "entry_points.txt").read_text()
    assert "protgraph_plugins.foldcomp" not in points and "protgraph_plugins.gat" in points
    assert str(tmp_path / "copy") in environment["PYTHONPATH"]


@pytest.mark.slow
def test_the_functions_of_a_removed_extension_are_no_attributes(tmp_path: Path) -> None:
    environment = {**os.environ, **TOOL.copy_without("pockets", tmp_path / "copy")}
    code = "import protgraph as pg; print(hasattr(pg, 'find_pockets'), 'find_pockets' in dir(pg))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path / "copy", env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False False", done.stderr
