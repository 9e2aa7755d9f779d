"""A width scan over three models and two widths is one TOML file: ``[[models]]`` with ``set``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from protgraph.bench.run import run_bench
from protgraph.bench.spec import BenchSpec
from protgraph.errors import OptionError, UnknownNameError, WiringError

SCAN = """
name = "widths"
dataset = "structures"
tasks = ["secondary_structure"]
seeds = [0]
jobs = 1
[fit]
epochs = 1

[[models]]
name = "gcn"
as = "gcn8"
set = { "layers.*.dim" = 8 }

[[models]]
name = "gcn"
as = "gcn16"
set = { "layers.*.dim" = 16 }

[[models]]
name = "tiny.toml"
as = "tiny8"
set = { "layers.*.dim" = 8 }

[[models]]
name = "tiny.toml"
as = "tiny16"
set.layers.0.dim = 16
set.layers.1.dim = 16

[[models]]
name = "inline8"
features = ["knn"]
layers = [{ name = "embed", reads = ["aatype"], options = { dim = 8 } }, { name = "gin", options = { dim = 8 } }]

[[models]]
name = "inline16"
features = ["knn"]
layers = [{ name = "embed", reads = ["aatype"], options = { dim = 8 } }, { name = "gin", options = { dim = 8 } }]
set = { "layers.*.dim" = 16 }
"""
TINY = """
features = ["knn"]
layers = [{ name = "embed", reads = ["aatype"], options = { dim = 4 } }, "sage"]
"""
WIDTHS = {"gcn8": 8, "gcn16": 16, "tiny8": 8, "tiny16": 16, "inline8": 8, "inline16": 16}


@pytest.fixture
def scan(tmp_path: Path, structures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "structures").mkdir()
    for name in ("1ajj", "1crn", "1vii", "2erl"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "structures")
    (tmp_path / "tiny.toml").write_text(TINY)
    path = tmp_path / "scan.toml"
    path.write_text(SCAN)
    return path


def test_each_model_has_its_width(scan):
    spec = BenchSpec.from_toml(scan)
    assert spec.models == tuple(WIDTHS)
    for name, width in WIDTHS.items():
        graph = spec.graph_of(name)
        assert graph.name == name
        assert {layer.options["dim"] for layer in graph.layers if "dim" in layer.options} == {width}
    assert BenchSpec.from_dict(spec.to_dict()) == spec  # as written to the folder of the run


def test_all_models_are_trained_and_compared(scan):
    rows = run_bench(BenchSpec.from_toml(scan).replace(out=scan.parent / "runs"))
    assert [(row.model, row.error) for row in rows] == [(name, "") for name in WIDTHS]
    sizes = {row.model: row.parameters for row in rows}
    assert all(sizes[f"{name}8"] < sizes[f"{name}16"] for name in ("gcn", "tiny", "inline"))
    assert len(set(sizes.values())) == 6


@pytest.mark.parametrize(
    "text, error, part",
    [
        ('[[models]]\nname = "gcn"\nset = { "layers.*.dim" = 8 }', OptionError, "'as'"),
        ('[[models]]\nname = "gcn"\nas = "a"\nset = { "layers.1.dmi" = 8 }', OptionError, "layers.1.dmi"),
        ('[[models]]\nname = "gcn"\nas = "a"\nset = 3', OptionError, "models: set = 3"),
        ('[[models]]\nname = "nogcn"\nas = "a"', UnknownNameError, "nogcn"),
        ('[[models]]\nname = "a"\nlayres = []', WiringError, "layres"),
        ('[[models]]\nname = "gcn"\nas = "a"\n[[models]]\nname = "gat"\nas = "a"', OptionError, "repeated"),
    ],
)
def test_wrong_tables_are_refused(scan, text, error, part):
    scan.write_text(SCAN.split("[[models]]")[0] + text)
    with pytest.raises(error) as e:
        BenchSpec.from_toml(scan)
    assert part in str(e.value)
