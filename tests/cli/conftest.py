"""Put a broken plugin beside the command line."""

from __future__ import annotations

from pathlib import Path

import pytest


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
