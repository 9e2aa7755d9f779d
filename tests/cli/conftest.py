"""Run the command line in this process, and put a broken plugin beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from protgraph.cli.app import main


class Result(NamedTuple):
    """What one command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """``run("list", "layers")`` → exit code, stdout, stderr."""

    def call(*args: object, columns: int = 120) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        try:
            main([str(arg) for arg in args])
            code = 0
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution on ``sys.path`` whose layer ``cracked`` raises when it is imported."""
    info = tmp_path / "cracked_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cracked-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.layers]\ncracked = cracked_mod:Cracked\n")
    (tmp_path / "cracked_mod.py").write_text("raise RuntimeError('no license for this machine')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path
