"""``protgraph list`` and ``protgraph info``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from protgraph.registry import registries


def test_list_prints_every_name_with_its_distribution(run) -> None:
    lines = run("list").out.splitlines()
    for plural, registry in registries.items():
        start = lines.index(f"{plural} ({len(registry)})") + 1
        shown = lines[start : start + len(registry)]
        assert [line.split()[0] for line in shown] == registry.names()
        for name, line in zip(registry.names(), shown, strict=True):
            assert registry.entry(name).source in line


@pytest.mark.parametrize("kind", ["layers", "layer"])
def test_list_takes_a_kind(run, kind: str) -> None:
    out = run("list", kind).out
    assert "\n  gcn" in out and "featurizers" not in out


def test_an_unknown_kind_lists_the_kinds(run) -> None:
    assert ", ".join(registries) in run("list", "layerz").err


def test_a_plugin_is_listed_without_being_imported(run, broken_plugin: Path) -> None:
    result = run("list", "layers")
    assert result.code == 0 and "cracked-dist 0.3" in result.out and "cracked_mod" not in sys.modules


def test_info_prints_fields_options_and_source(run) -> None:
    out = run("info", "gat", "--kind", "layers").out
    for part in (
        "layer gat",
        "protgraph-pyg",
        "reads     h, edges",
        "writes    h",
        "heads: int ≥ 1 = ",
        "layer.py:",
        "Parameters",
    ):
        assert part in out


def test_info_prints_all_kinds_that_share_a_name(run) -> None:
    out = run("info", "gcn").out
    assert "layer gcn" in out and "model gcn" in out


@pytest.mark.parametrize("plural", registries)
def test_info_works_for_every_component(run, plural: str) -> None:
    for name in registries[plural]:
        result = run("info", name, "--kind", plural)
        assert result.code == 0, result.err
        assert f"{registries[plural].kind} {name}\n" in result.out


def test_info_of_a_task_has_target_metrics_and_masking(run) -> None:
    out = run("info", "b_factor", "--kind", "tasks").out
    assert "target    regression per node, size 1: b_factor" in out
    assert "pearson ↑" in out and "rmse ↓" in out
    assert "monitor   pearson" in out
    assert "hidden    b_factor" in out


def test_info_of_an_unknown_name_suggests_the_nearest(run) -> None:
    result = run("info", "distant_kn")
    assert result.code == 2 and "'distant_knn'" in result.err


def test_info_of_a_broken_plugin_has_its_error(run, broken_plugin: Path) -> None:
    result = run("info", "cracked")
    assert result.code == 2 and "Traceback" not in result.err
    for part in (
        "layer 'cracked'",
        "cracked-dist 0.3",
        "cracked_mod:Cracked",
        "RuntimeError: no license for this machine",
    ):
        assert part in result.err


def test_a_claim_on_a_built_in_name_is_listed_and_described_with_its_distribution(run, tmp_path, monkeypatch) -> None:
    info = tmp_path / "acme_gated-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gated\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.layers]\ngcn = protgraph.nn.layers.convolutions:SAGE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (row,) = [line for line in run("list", "layers").out.splitlines() if "acme-gated/gcn" in line]
    assert "acme-gated 0.3" in row and "'gcn' is built in" in row
    assert "layer acme-gated/gcn" in run("info", "acme-gated/gcn").out
