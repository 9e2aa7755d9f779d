"""``--set`` and TOML files where commands take a model: train, describe, check, attention and featurize."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from protgraph.checkpoint import load_checkpoint
from protgraph.model import ModelSpec

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
    assert run("featurize", "data", "--model", "tiny.toml", "-o", "graphs").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("describe", "gcn", "--set", "layers.1.dmi=12"),
        ("train", "gcn", "--data", "data", "--task", "secondary_structure", "--set", "layers.1.dmi=12"),
        ("check", "gcn", "--set", "layers.1.dmi=12"),
        ("attention", "gat", "data/1crn.bcif", "-o", "out", "--set", "layers.1.dmi=12"),
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_path_is_an_error_in_each_command(run, folder, command):
    result = run(*command)
    assert result.code == 2 and "layers.1.dmi" in result.err and "dim" in result.err
    assert not (folder / "out").exists()


def test_a_trained_model_cannot_be_changed(run, folder):
    result = run("describe", "secondary_structure", "--set", "layers.1.dim=12")
    assert result.code == 2 and "--set" in result.err


def test_a_missing_file_is_named(run, folder):
    result = run("train", "no.toml", "--data", "data", "--task", "secondary_structure")
    assert result.code == 2 and "no.toml" in result.err
