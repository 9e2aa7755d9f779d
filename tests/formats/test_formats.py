"""Files of every version of each format open with equal numbers; a later format is refused with what to install."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.recipes.recipe import Recipe
from safetensors import safe_open
from safetensors.torch import save_file

from protgraph import __version__
from protgraph.bench.rows import ROW_VERSION, read_rows
from protgraph.checkpoint import load_checkpoint
from protgraph.checkpoint.checkpoint_header import ADAPTER_VERSION, FORMAT_VERSION, OLDEST_VERSION, upgrade_header
from protgraph.data.datasets.card import load_card
from protgraph.data.store import GraphStore
from protgraph.data.store.store_description import VERSION as STORE_VERSION
from protgraph.errors import CheckpointError, DatasetError, OptionError, WiringError
from protgraph.featurize.result import COLUMNS
from protgraph.inference import Embeddings, embed
from protgraph.inference.embedding import EMBEDDINGS_VERSION
from protgraph.inference.verification import TOLERANCE
from protgraph.model import ModelSpec
from protgraph.validation import TOML_VERSION, check_format_version
from tests.formats.write_fixtures import FOLDER, STRUCTURE, describe_store, numbers_of, tiny_spec

EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
INSTALL = r"pip install 'protgraph-pyg>=9\.1\.0'"


@pytest.fixture(autouse=True)
def in_folder_of_checkpoints(monkeypatch):
    """The adapters name their base relative to this folder."""
    monkeypatch.chdir(FOLDER / "checkpoint")


def names(folder: str) -> list[str]:
    return sorted(path.name for path in (FOLDER / folder).iterdir())


def test_each_version_that_is_read_has_a_file():
    checkpoints = range(OLDEST_VERSION, max(FORMAT_VERSION, ADAPTER_VERSION) + 1)
    assert names("checkpoint") == [f"version_{version}.safetensors" for version in checkpoints]
    assert names("store") == [f"version_{version}" for version in range(3, STORE_VERSION + 1)]
    assert names("rows") == [f"version_{version}.jsonl" for version in range(1, ROW_VERSION + 1)]
    assert names("model") == [f"version_{version}.toml" for version in range(1, TOML_VERSION + 1)]
    assert names("embeddings") == [f"version_{version}.npz" for version in range(1, EMBEDDINGS_VERSION + 1)]


@pytest.mark.parametrize("name", names("checkpoint"))
def test_a_checkpoint_predicts_what_it_predicted(name):
    numbers = torch.tensor(numbers_of(load_checkpoint(name, check_code=False)))
    assert len(numbers) == 46
    assert torch.allclose(numbers, torch.tensor(EXPECTED[name]), rtol=0, atol=TOLERANCE)


def test_members_differ_so_that_the_order_of_tensors_matters():
    first, second = load_checkpoint("version_3.safetensors", check_code=False).members
    assert not torch.equal(next(iter(first.head.parameters())), next(iter(second.head.parameters())))


def test_an_older_header_is_upgraded_in_steps():
    header = upgrade_header({"format_version": 2, "task": "helix"})
    assert header == {"format_version": 3, "task": "helix", "other_graphs": [], "calibration": None}
    assert upgrade_header(header) == header


@pytest.mark.parametrize("name", names("store"))
def test_a_store_has_the_graphs_and_residues_it_had(name):
    store = GraphStore(FOLDER / "store" / name)
    store.verify()
    found, expected = describe_store(store), EXPECTED[f"store {name}"]
    assert (found["names"], found["sequence"]) == (expected["names"], expected["sequence"])
    assert found["sums"].keys() == expected["sums"].keys()
    for field, (shape, total) in expected["sums"].items():
        assert found["sums"][field][0] == shape
        assert found["sums"][field][1] == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", names("rows"))
def test_rows_of_a_benchmark_have_the_values_they_had(name):
    (row,) = read_rows(FOLDER / "rows" / name).values()
    assert (row.key, row.model, row.score, row.monitor) == ("0123456789abcdef", "gcn", 0.25, "accuracy")
    assert np.isnan(row.metrics["test"]["mcc"])
    assert row.history[0]["train_loss"] == 1.5


@pytest.mark.parametrize("name", names("model"))
def test_a_model_specification_is_the_model_it_was(name):
    assert ModelSpec.from_toml(FOLDER / "model" / name) == tiny_spec()


@pytest.mark.parametrize("name", names("embeddings"))
def test_embeddings_are_those_of_the_checkpoint(name):
    stored = Embeddings.read(FOLDER / "embeddings" / name)
    now = embed(load_checkpoint("version_2.safetensors", check_code=False), STRUCTURE, device="cpu")
    assert stored.residues.tolist() == now.residues.tolist()
    assert np.allclose(stored.node, now.node, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", names("manifest"))
def test_a_manifest_has_the_columns_of_today(name):
    (row,) = json.loads((FOLDER / "manifest" / name).read_text("utf-8"))
    assert tuple(row) == (*COLUMNS, "loss")


CARD = """
name = "two"
version = "1"
license = "CC0"
citation = ""
description = "Two chains."
[splits]
rule = "by hand"
train = { proteins = 1, residues = 46 }
[tasks.helix]
level = "node"
kind = "classification"
names = ["no", "yes"]
labels = "by hand"
examples = "all"
splits = { train = { proteins = 1, residues = 46, labeled = 46, per_class = [20, 26] } }
"""


def test_a_card_of_version_1_is_read(tmp_path):
    path = tmp_path / "dataset.toml"
    path.write_text(CARD)
    card = load_card(path)
    assert card.tasks["helix"].counts["train"].per_class == (20, 26)
    path.write_text('format_version = 1\nprotgraph = "0.1.0"\n' + CARD)
    assert load_card(path) == card


# --- later formats ---------------------------------------------------------------------------------------------------


def later_checkpoint(folder: Path) -> Path:
    with safe_open(FOLDER / "checkpoint" / "version_3.safetensors", framework="pt") as file:
        header = json.loads(file.metadata()["protgraph"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- not a mapping
    path = folder / "later.safetensors"
    later = header | {"format_version": 99, "version": "9.1.0", "of the future": []}
    save_file(tensors, path, metadata={"protgraph": json.dumps(later)})
    return path


def later_store(folder: Path) -> Path:
    shutil.copytree(FOLDER / "store" / "version_3", folder / "store")
    path = folder / "store" / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99, "protgraph": "9.1.0"}))
    return path.parent


def later_rows(folder: Path) -> Path:
    row = json.loads((FOLDER / "rows" / "version_1.jsonl").read_text())
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row | {"format_version": 99, "protgraph": "9.1.0", "column": 1}) + "\n")
    return path


def later_embeddings(folder: Path) -> Path:
    path = folder / "later.npz"
    np.savez(path, format_version=np.array(99), protgraph=np.array("9.1.0"))
    return path


def later_toml(folder: Path) -> Path:
    path = folder / "later.toml"
    path.write_text('format_version = 99\nprotgraph = "9.1.0"\nname = "later"\nkey = "of the future"\n')
    return path


@pytest.mark.parametrize(
    ("write", "read", "error"),
    [
        (later_checkpoint, load_checkpoint, CheckpointError),
        (later_store, GraphStore, DatasetError),
        (later_rows, read_rows, OptionError),
        (later_embeddings, Embeddings.read, DatasetError),
        (later_toml, ModelSpec.from_toml, OptionError),
        (later_toml, load_card, DatasetError),
        (later_toml, Recipe.from_toml, OptionError),
    ],
)
def test_a_later_format_is_refused_with_the_version_to_install(write, read, error, tmp_path):
    path = write(tmp_path)
    with pytest.raises(error, match=INSTALL) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert __version__ in str(caught.value)


def test_a_later_format_of_an_unknown_writer_asks_for_the_newest_version():
    with pytest.raises(OptionError, match="pip install --upgrade protgraph-pyg"):
        check_format_version("file", 4, 3)


@pytest.mark.parametrize("version", [True, "3", None, 3.0])
def test_a_version_that_is_no_integer_is_an_error(version):
    with pytest.raises(WiringError, match="Allowed: version 3"):
        check_format_version("file", version, 3, oldest=3, error=WiringError)


def test_the_error_of_an_older_format_has_a_way_out():
    with pytest.raises(OptionError, match="reads versions 2 to 4. Train the model again"):
        check_format_version("file", 1, 4, oldest=2, older="Train the model again.")
