"""``protgraph speed``: needs the checkout's folder ``benchmarks``, from any working directory."""

from __future__ import annotations

import sys

import pytest

from protgraph.cli import speed


def test_speed_prints_ratios_from_another_working_directory(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", ".")])
    result = run("speed", "neighbors", "--seconds", 0)
    assert result.code == 0
    assert all(name in result.out for name in ("cKDTree", "1500", "1.00"))


def test_without_a_checkout_the_error_names_the_missing_folder(run, tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "__file__", str(tmp_path / "site-packages" / "protgraph" / "cli" / "speed.py"))
    result = run("speed", "neighbors")
    assert result.code == 2
    assert str(tmp_path / "site-packages" / "benchmarks") in result.err and "Clone" in result.err


@pytest.mark.parametrize("name", ["edge", "neighbor"])
def test_an_unknown_measurement_is_refused(run, name):
    result = run("speed", name)
    assert result.code == 2 and repr(name) in result.err


def test_another_device_is_for_some_measurements_only(run, monkeypatch):
    result = run("speed", "neighbors", "--device", "cuda:99")
    assert result.code == 2 and "cuda:99" in result.err
    monkeypatch.setattr("protgraph.train.FitConfig.torch_device", lambda self: "cuda:0")
    result = run("speed", "neighbors", "--device", "cuda")
    assert result.code == 2 and "attention, edges, estimate, layers, train" in result.err
