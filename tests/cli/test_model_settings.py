"""``--set`` and TOML files in all commands that take an untrained model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from protgraph.checkpoint import load_checkpoint
from protgraph.data.store.graph_store import open_store
from protgraph.model import ModelSpec, as_model_spec, build_model, change_model
from protgraph.registry import tasks

MODEL = """
features = ["knn", "edge_distance"]

[[layers]]
name = "embed"
reads = ["aatype"]
options = { dim = 8 }

[[layers]]
name = "gcn"
options = { dim = 8 }
"""


@pytest.fixture
def folder(structures_dir, tmp_path, monkeypatch) -> Path:
    """Four small structures and ``tiny.toml``, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("1crn", "2erl", "1ajj", "1vii"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "data")
    (tmp_path / "tiny.toml").write_text(MODEL)
    return tmp_path


def test_train_a_file_with_a_changed_width(run, folder):
    arguments = ["--data", "data", "--task", "secondary_structure", "--epochs", 1, "--log", "none"]
    result = run("train", "tiny.toml", *arguments, "--set", "layers.1.dim=12", "--set", "features.knn.k=5")
    assert result.code == 0, result.err
    model = load_checkpoint("tiny-secondary_structure.safetensors").model
    assert model.spec.layers[1].options == {"dim": 12} and model.spec.features[0].options == {"k": 5}
    assert model.fields["h"].irreps == "12x0e"


def test_describe_prints_a_model_as_a_file_that_describe_accepts(run, folder):
    text = run("describe", "gcn", "--set", "layers.*.dim=16", "--toml").out
    (folder / "again.toml").write_text(text)
    assert {layer.options["dim"] for layer in ModelSpec.from_toml("again.toml").layers if "dim" in layer.options} == {
        16
    }
    described = run("describe", "again.toml")
    assert described.code == 0 and "16x0e" in described.out


def test_check_a_file_with_a_changed_width(run, folder):
    result = run("check", "tiny.toml", "--set", "layers.1.dim=12", "--only", "builds", "--only", "finite")
    assert result.code == 0 and "model tiny" in result.out, result.out + result.err


def test_featurize_for_a_file(run, folder):
    assert run("featurize", "data", "--model", "tiny.toml", "--set", "features.knn.k=2", "-o", "graphs").code == 0
    assert int(open_store("graphs")[0].edge_index[1].bincount().max()) == 2
    result = run("featurize", "data", "--set", "features.knn.k=2", "-o", "other")
    assert result.code == 2 and "--model" in result.err


@pytest.mark.parametrize("model", ["gcn", "tiny.toml"])
def test_info_shows_the_changed_model(run, folder, model):
    assert "layers.1 (gcn, dim=128" in run("info", model, "--set", "layers.1.dim=128").out
    assert "dim=128" not in run("info", model).out


SPEC = """
name = "small"
dataset = "data"
tasks = ["secondary_structure"]
models = ["majority", "tiny.toml"]
seeds = [0]
jobs = 1
[fit]
epochs = 1
"""


def test_bench_changes_the_models_that_have_the_path(run, folder, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_CACHE", "cache")
    (folder / "spec.toml").write_text(SPEC)
    result = run("bench", "spec.toml", "--set", "layers.gcn.dim=12", "--set", "features.*.k=3")
    assert result.code == 0, result.err
    assert "--set layers.gcn.dim: tiny\n" in result.err
    rows = map(json.loads, Path("runs/small/rows.jsonl").read_text().splitlines())
    sizes = {row["model"]: row["parameters"] for row in rows}
    changed = change_model(as_model_spec("tiny.toml"), {"layers.gcn.dim": 12})
    assert sizes["tiny"] == build_model(changed, tasks.get("secondary_structure").target).num_parameters


@pytest.mark.parametrize(
    ("setting", "part"), [("layers.1.dmi=12", "no model of spec.toml"), ('name="a"', "keep their names")]
)
def test_bench_refuses_a_path_that_no_model_has(run, folder, setting, part):
    (folder / "spec.toml").write_text(SPEC)
    result = run("bench", "spec.toml", "--set", setting)
    assert result.code == 2 and part in result.err and not (folder / "runs").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("describe", "gcn", "--set", "layers.1.dmi=12"),
        ("train", "gcn", "--data", "data", "--task", "secondary_structure", "--set", "layers.1.dmi=12"),
        ("check", "gcn", "--set", "layers.1.dmi=12"),
        ("info", "gcn", "--set", "layers.1.dmi=12"),
        ("featurize", "data", "--model", "gcn", "-o", "out", "--set", "layers.1.dmi=12"),
        ("attention", "gat", "data/1crn.bcif", "-o", "out", "--set", "layers.1.dmi=12"),
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_path_is_an_error_in_each_command(run, folder, command):
    result = run(*command)
    assert result.code == 2 and "layers.1.dmi" in result.err and "dim" in result.err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("command", ["describe", "info"])
def test_a_trained_model_cannot_be_changed(run, folder, command):
    result = run(command, "ligand_site", "--set", "layers.1.dim=12")
    assert result.code == 2 and "--set" in result.err


def test_a_missing_file_is_named(run, folder):
    result = run("train", "no.toml", "--data", "data", "--task", "secondary_structure")
    assert result.code == 2 and "no.toml" in result.err
