"""``--import FILE``: on every command that uses components."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from protgraph.cli.app import COMMANDS
from protgraph.registry.provider import IMPORT_VARIABLE

CODE = """
import protgraph as pg
pg.models.register("command_model", pg.ModelSpec("command_model", ["knn"], [pg.component("embed", reads=["aatype"])]))
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(IMPORT_VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "command_source.py"
    path.write_text(CODE)
    yield path
    sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_uses_components_has_the_option(run, command: str) -> None:
    assert ("--import" in run(command, "--help").out) == (command not in ("doctor", "fetch", "new-plugin"))


def test_names_of_an_imported_file_are_listed_and_described(run, source: Path) -> None:
    (row,) = [line for line in run("list", "models", "--import", source).out.splitlines() if "command_model" in line]
    assert "import command_source.py" in row
    out = run("info", "command_model", "--import", source).out
    assert "import command_source.py" in out and f"{source}:3" in out


def test_an_error_in_a_file_is_one_line_with_its_place(run, source: Path) -> None:
    source.write_text("x = [][1]\n")
    result = run("list", "--import", source)
    assert result.code == 2 and "IndexError" in result.err and f"{source}:1" in result.err
    assert "Traceback" not in result.err and len(result.err.splitlines()) == 1
    assert "Traceback" in run("list", "--debug", "--import", source).err
