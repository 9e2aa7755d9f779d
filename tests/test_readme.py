"""Tests of the README and the documentation pages: Python blocks run, commands and their options exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


#: Pages whose Python blocks need nothing but the embedded dataset.
PAGES = [ROOT / "docs" / "tasks.md"]
PYTHON = [b for text in (README, *(page.read_text(encoding="utf-8") for page in PAGES)) for b in blocks("python", text)]


def commands() -> list[list[str]]:
    """Words of every ``protgraph …`` line of the console blocks, comments left out."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line.split("#")[0].split()[1:] for line in lines if line.startswith("$ protgraph")]


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_every_python_block_runs(number, tmp_path):
    shutil.copy(ROOT / "datasets" / "pdb_core" / "structures" / "1ubq.bcif", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PYTHON[number]],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words[:2]))
def test_every_command_exists_and_takes_the_options_shown(words):
    from protgraph.cli.app import COMMANDS

    assert words[1] in COMMANDS
    shown = subprocess.run([*_protgraph(), words[1], "--help"], capture_output=True, text=True, env=_wide())
    assert shown.returncode == 0
    assert "Example" in shown.stdout
    for option in (w.split("=")[0] for w in words if w.startswith("-")):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown.stdout), f"{option} is not an option of {words[1]}"


def test_every_command_of_the_program_has_help_with_an_example():
    from protgraph.cli.app import COMMANDS

    for name in COMMANDS:
        shown = subprocess.run([*_protgraph(), name, "--help"], capture_output=True, text=True, env=_wide())
        assert shown.returncode == 0 and "Example" in shown.stdout, name


def _protgraph() -> list[str]:
    return [sys.executable, "-m", "protgraph.cli.app"]


def _wide() -> dict[str, str]:
    return os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
