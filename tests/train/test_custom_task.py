"""A custom task on a dataset that does not list it: all its proteins, in their splits, with derived labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph import registry
from protgraph.errors import DatasetError, UnknownNameError
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels import load_dataset, prepare
from protgraph.labels.loading import resolve_task
from protgraph.task import cross_entropy
from protgraph.train import fit
from tests.train.conftest import CHAINS, Small


def crowding_class(residues: pg.Residues) -> np.ndarray:
    """Return 1 for residues with more than 16 CA atoms within 10 Å, else 0, ``(N,)`` int64."""
    distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
    return ((distance < 10).sum(1) > 16).astype(np.int64)


TARGET = pg.Target("crowding_class", "node", "classification", 2, ("low", "high"))
CROWDING = pg.Task(
    "crowding_class",
    TARGET,
    cross_entropy,
    (registry.metrics.get("accuracy"),),
    "accuracy",
    derive=crowding_class,
    doc="Crowding.",
)


@pytest.fixture
def small(structures_dir) -> Small:
    return Small(structures_dir)


def test_splits_and_proteins_are_those_of_the_dataset(small):
    data = load_dataset(small, task=CROWDING)
    assert data.tasks() == [*small.tasks(), "crowding_class"] and data.target("crowding_class") == TARGET
    found = {split: tuple(e.id for e in data.examples("crowding_class", split)) for split in CHAINS}
    assert found == CHAINS and data.splits("crowding_class") == list(CHAINS)
    assert data.labels("crowding_class", data.examples("crowding_class")[0]) is None
    assert (data.name, data.version, data.reads_files) == (small.name, small.version, True)


def test_other_tasks_keep_their_labels(small):
    data, example = load_dataset(small, task=CROWDING), small.examples("helix")[0]
    assert np.array_equal(data.labels("helix", example).values, small.labels("helix", example).values)


@pytest.mark.slow
def test_labels_are_derived_for_training(small, tmp_path):
    data = load_dataset(small, task=CROWDING)
    prepared = prepare(data, resolve_task(CROWDING, data), FeaturePlan([]), cache=tmp_path)
    graph, example = prepared.splits["val"][0], small.examples("helix", "val")[0]
    assert torch.equal(graph.y, torch.from_numpy(crowding_class(small.read(example))))


@pytest.mark.slow
def test_a_registered_task_trains_by_its_name(small, tmp_path):
    pg.tasks.register("crowding_class", CROWDING)
    config = pg.FitConfig(epochs=1, device="cpu")
    result = fit("majority", small, "crowding_class", config=config, cache=tmp_path)
    assert result.task is CROWDING and {split: size[0] for split, size in result.sizes.items()} == {
        split: len(names) for split, names in CHAINS.items()
    }


def test_the_embedded_dataset_and_benchmarks_take_it():
    pg.tasks.register("crowding_class", CROWDING)
    data = load_dataset("pdb_core", task="crowding_class")
    chains = {e.id: e.split for task in pg.datasets.create("pdb_core").tasks() for e in data.examples(task)}
    assert {e.id: e.split for e in data.examples("crowding_class")} == chains and len(chains) == 420
    spec = pg.BenchSpec(name="x", dataset="pdb_core", tasks=["crowding_class"], models=["gcn"], seeds=[0])
    assert spec.data("crowding_class").splits("crowding_class") == data.splits("crowding_class")


def test_a_task_that_requires_labels_is_refused_by_name(small):
    with pytest.raises(UnknownNameError, match="'ligand_binding' requires labels.*'small'"):
        load_dataset(small, task="ligand_binding")
    with pytest.raises(UnknownNameError, match="'crowdin'.*'crowding_class'"):
        pg.tasks.register("crowding_class", CROWDING)
        load_dataset(small, task="crowdin")


def test_a_task_is_registered_under_its_own_name(small):
    pg.tasks.register("other_name", CROWDING)
    with pytest.raises(DatasetError, match="'other_name'.*'crowding_class'"):
        load_dataset(small, task="other_name")


def test_an_example_in_two_splits_is_refused(small, monkeypatch):
    examples = Small.examples
    moved = {"size": {"val": "test"}}

    def different(self, task, split=None):
        return [
            pg.Example(e.id, e.path, e.chains, moved.get(task, {}).get(e.split, e.split)) for e in examples(self, task)
        ]

    monkeypatch.setattr(Small, "examples", different)
    with pytest.raises(DatasetError, match="'1a8o_A'.*'val'.*'test'"):
        load_dataset(small, task=CROWDING)
