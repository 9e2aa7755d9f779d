"""``bench probes`` from end to end on pdb_core: files, resuming, choice of proteins, faults."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.probes.scores import probe_scores
from protgraph_plugins.probes.tasks import TASKS, choose_examples, open_task
from protgraph_plugins.probes.vectors import ModelVectors, WindowVectors, proteinmpnn_vectors, random_vectors

import protgraph as pg
from protgraph.checkpoint import Checkpoint, save_checkpoint
from protgraph.cli.app import main
from protgraph.registry import metrics
from protgraph.task import SplitPredictions

TASK = "secondary_structure"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A small network that was never trained."""
    target = pg.Target("residue_type", "node", "classification", 20)
    model = pg.build_model("structure_encoder", target, seed=3)
    return save_checkpoint(
        tmp_path_factory.mktemp("model") / "mine.safetensors", Checkpoint(model, "masked_residue_type")
    )


def run(checkpoint: Path, folder: Path, *options: str) -> int:
    with pytest.raises(SystemExit) as e:
        main(["bench", "probes", "--model", str(checkpoint), "--limit", "6", "-o", str(folder), *options])
    return int(e.value.code or 0)


@pytest.fixture(scope="module")
def finished(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert run(checkpoint, folder, "--task", TASK) == 0
    return folder


def test_all_models_are_scored_on_the_same_residues(finished):
    with (finished / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows[:5]] == [
        "mine",
        "random_weights",
        "proteinmpnn.v_48_020",
        "3di",
        "residue_type",
    ]
    assert len(rows) == 10 and {row["head"] for row in rows} == {"linear", "mlp"}
    assert len({(row["rows"], row["proteins"], row["floor"]) for row in rows}) == 1
    for row in rows:
        assert float(row["low"]) <= float(row["score"]) <= float(row["high"])
    by_model = {row["model"]: float(row["score"]) for row in rows if row["head"] == "linear"}
    assert by_model["proteinmpnn.v_48_020"] > by_model["residue_type"] > float(rows[0]["floor"])
    content = json.loads((finished / "probes.json").read_text())
    assert len(content["scores"]) == 10 and content["skipped"] == [] and content["options"]["limit"] == 6


def test_a_second_run_and_one_that_was_interrupted_give_the_same_table(checkpoint, finished, tmp_path, monkeypatch):
    calls = []
    compute = ModelVectors.compute

    def interrupted(self, proteins):
        calls.append(len(proteins))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return compute(self, proteins)

    monkeypatch.setattr("protgraph_plugins.probes.vectors._CHUNK", 300)
    monkeypatch.setattr(ModelVectors, "compute", interrupted)
    assert run(checkpoint, tmp_path, "--task", TASK) == 130
    written = len(list((tmp_path / "vectors").rglob("*.npz")))
    assert 0 < written < 15 and not (tmp_path / "table.csv").exists()

    monkeypatch.setattr(ModelVectors, "compute", compute)
    assert run(checkpoint, tmp_path, "--task", TASK) == 0
    assert (tmp_path / "table.csv").read_bytes() == (finished / "table.csv").read_bytes()
    assert run(checkpoint, tmp_path, "--task", TASK) == 0
    assert (tmp_path / "table.csv").read_bytes() == (finished / "table.csv").read_bytes()


def test_a_dataset_that_is_not_prepared_is_a_row_with_the_command(checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    assert run(checkpoint, tmp_path / "out", "--task", "ppi_site", "--task", "dna_site") == 0
    printed = capsys.readouterr()
    assert "protgraph data prepare ppi_site" in printed.err and "protgraph data prepare dna_site" in printed.out
    assert len(json.loads((tmp_path / "out" / "probes.json").read_text())["skipped"]) == 2


def test_an_unknown_task_is_refused_with_a_suggestion(checkpoint, tmp_path, capsys):
    assert run(checkpoint, tmp_path, "--task", "dna_sites") == 2
    assert "dna_site" in capsys.readouterr().err


def test_two_models_of_one_name_are_refused(checkpoint, tmp_path, capsys):
    assert run(checkpoint, tmp_path, "--model", str(checkpoint)) == 2
    assert "mine" in capsys.readouterr().err


def test_a_smaller_limit_gives_the_first_proteins_of_a_larger_one_and_each_cluster_once():
    dataset = pg.load_dataset("pdb_core")
    examples = dataset.examples(TASK, "test")
    chosen = [choose_examples(dataset, examples, limit, seed=1) for limit in (10, 200)]
    assert chosen[0] == chosen[1][:10] and len(chosen[1]) == len(examples)
    links = [dataset.links(example) for example in chosen[1]]
    count = len(set(links))
    assert len(set(links[:count])) == count < len(links)
    assert choose_examples(dataset, examples, 10, seed=2) != chosen[0]


def test_splits_are_those_of_the_dataset():
    splits = open_task(TASKS[TASK], {"train": 5, "val": 3, "test": 4})
    assert {name: len(members) for name, members in splits.examples.items()} == {"train": 5, "val": 3, "test": 4}
    assert all(example.split == name for name, members in splits.examples.items() for example in members)


def test_windows_have_the_letters_of_the_neighbors_in_the_chain():
    window = WindowVectors("residue_type")
    letters = np.array([3, 5, 3, 20], np.uint8)
    chain, seq_pos = np.array([0, 0, 0, 1]), np.array([0, 1, 3, 0])  # a gap after the second residue
    vectors = window.vectors(letters, chain, seq_pos).reshape(4, 15, 21)
    assert vectors.sum((1, 2)).tolist() == [3, 3, 3, 1]
    assert vectors[0, 7, 3] == vectors[0, 8, 5] == vectors[0, 10, 3] == vectors[3, 7, 20] == 1


def test_vectors_of_models_are_those_of_embed(checkpoint):
    dataset = pg.load_dataset("pdb_core")
    residues = dataset.read(dataset.examples(TASK, "val")[0])
    model = ModelVectors.open(str(checkpoint))
    expected = pg.embed(pg.load_checkpoint(checkpoint), pg.featurize.ProteinRequest("x", read=lambda: residues))
    vectors = model.compute({"x": residues})["x"]
    np.testing.assert_array_equal(vectors, expected.node.astype(np.float16))
    random = random_vectors(model)
    assert random.key != model.key and random.compute({"x": residues})["x"].shape == vectors.shape
    assert proteinmpnn_vectors(one_chain=True).compute({"x": residues})["x"].shape == (len(residues), 128)


def test_differences_and_tests_are_of_clusters():
    """A model that is right on nine of ten labels in each of 12 proteins, against one that is right on half."""
    import torch

    y = torch.arange(240) % 2
    protein = torch.arange(240) // 20
    number = torch.arange(240) % 20

    def predictions(right: int) -> SplitPredictions:
        called = torch.where(number < right, y, 1 - y)
        return SplitPredictions(torch.eye(2)[called], y, chain=protein, protein=protein)

    floor = SplitPredictions(torch.tensor([[0.0, 1.0]]).expand(240, 2), y, protein=protein)
    accuracy = metrics.get("accuracy")
    both = {"good": predictions(18), "poor": predictions(10)}
    good, poor = probe_scores("task", "linear", accuracy, both, [i // 2 for i in range(12)], floor)
    assert (good.score, poor.score, poor.floor) == pytest.approx((0.9, 0.5, 0.5))
    assert (poor.difference, poor.difference_low, poor.difference_high) == pytest.approx((0.4, 0.4, 0.4))
    assert (poor.proteins, poor.clusters, poor.rows) == (12, 6, 240)
    assert poor.p_holm == pytest.approx(2 / 2**6)  # both signs of six equal differences
    assert np.isnan(good.difference) and np.isnan(good.p_holm)
