"""FASTA files as input of featurize, train, predict and embed."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest

from protgraph.data.store.graph_store import GraphStore


@pytest.fixture
def folder(tmp_path):
    """Write ten synthetic records, gzipped, with a label for each, and return the folder."""
    rng = np.random.default_rng(1)
    names = [f"seq{i}" for i in range(10)]
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    text = "".join(f">{name}\n{''.join(rng.choice(letters, 30 + i))}\n" for i, name in enumerate(names))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "made.fasta.gz").write_bytes(gzip.compress(text.encode()))
    rows = [f"{name},{i % 2},{('train', 'val', 'test')[i // 2 % 3]}" for i, name in enumerate(names)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,active,split", *rows]))
    return tmp_path


def test_sequences_are_featurized_and_featurizers_of_structures_fail(run, folder):
    done = run("featurize", folder / "own", "-f", "sequence:k=2", "-f", "edge_offset", "-o", folder / "graphs")
    assert done.code == 0, done.err
    store = GraphStore(folder / "graphs")
    assert store.names == [f"seq{i}" for i in range(10)]
    assert store.sizes.tolist() == list(range(30, 40))
    assert store[0].pos.isnan().all()
    with (folder / "graphs.manifest.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows[3]["source"].endswith("made.fasta.gz#seq3")
    failed = run("featurize", folder / "own", "-f", "knn", "-o", folder / "none")
    assert failed.code == 2
    assert "coordinates" in (folder / "none.manifest.tsv").read_text()


def test_a_sequence_model_trains_predicts_and_embeds(run, folder):
    checkpoint = folder / "m.safetensors"
    options = ("--labels", folder / "labels.csv", "--task", "active", "--epochs", "1", "-q", "-o", checkpoint)
    done = run("train", "sequence_mlp", "--data", folder / "own", *options)
    assert done.code == 0, done.err
    done = run("predict", checkpoint, folder / "own", "-o", folder / "out.csv")
    assert done.code == 0, done.err
    with (folder / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["protein"] for row in rows] == [f"seq{i}" for i in range(10)]
    assert run("embed", checkpoint, folder / "own", "-o", folder / "v.npz").code == 0
    assert np.load(folder / "v.npz")["node"].shape[0] == sum(range(30, 40))
