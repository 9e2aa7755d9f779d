"""``protgraph doctor``."""

from __future__ import annotations

from pathlib import Path

import torch

from protgraph.registry import registries


def test_a_complete_installation_gives_exit_code_0(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "pos.npy").write_bytes(bytes(3 * 2**20))
    result = run("doctor")
    assert result.code == 0, result.out
    assert torch.__version__ in result.out
    assert f"{tmp_path}: 3 MiB" in result.out
    for plural, registry in registries.items():
        assert f"  {plural:<16} {len(registry)} of {len(registry)} loaded" in result.out


def test_a_broken_plugin_gives_exit_code_1_and_its_name(run, broken_plugin: Path) -> None:
    result = run("doctor")
    assert result.code == 1
    assert "layer cracked (cracked-dist 0.3)" in result.out and "no license for this machine" in result.out
    assert f"{len(registries['layers']) - 1} of {len(registries['layers'])} loaded" in result.out


def test_an_extra_that_does_not_import_is_a_problem(run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "torch_scatter.py").write_text("raise OSError('undefined symbol')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "torch_scatter", raising=False)
    result = run("doctor")
    assert result.code == 1 and "undefined symbol" in result.out
