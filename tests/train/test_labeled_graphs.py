"""Every dataset returns labeled graphs for a training loop of your own: those that fit trains on."""

from __future__ import annotations

import pickle
import shutil

import pytest
import torch
from torch_geometric.loader import DataLoader

import protgraph as pg
from protgraph.data.datasets.dataset import resplit
from protgraph.errors import DatasetError, LeakError
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels.loading import resolve_task
from protgraph.labels.preparation import prepare

NAMES = ("1ubq", "1ajj", "134l", "1fas", "1bo0", "2erl", "1gya", "1crn")
TASK = "secondary_structure"
FEATURES = ("dihedral", "knn", "edge_distance")


@pytest.fixture(scope="module")
def folder(structures_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("structures")
    for name in NAMES:
        shutil.copy(structures_dir / f"{name}.bcif", path)
    return path


@pytest.fixture(scope="module")
def dataset(folder):
    return pg.load_dataset(folder, task=TASK)


@pytest.mark.slow
def test_graphs_of_a_folder_are_those_of_fit_with_all_features(dataset, tmp_path):
    graphs = dataset.graphs(TASK, "train", features=FEATURES, cache=tmp_path)
    plan = FeaturePlan(FEATURES)
    store = prepare(dataset, resolve_task(TASK, dataset), plan, cache=tmp_path).splits["train"]
    assert [graph.name for graph in graphs] == store.names and graphs.failures == ()
    assert torch.equal(graphs[0].y, store[0].y) and graphs[0].y_level == "node" and graphs[0].split == "train"
    assert torch.equal(graphs[0].edge_dist, plan.featurize(store[0]).edge_dist)


@pytest.mark.slow
def test_all_splits_together_are_a_dataset_again(dataset, tmp_path):
    graphs = dataset.graphs(TASK, cache=tmp_path)
    assert len(graphs) == len(NAMES) == len(graphs[:])
    assert {graph.split for graph in graphs} == set(dataset.splits(TASK))
    again = pg.load_dataset(list(graphs))
    assert {e.id: e.split for e in again.examples("y")} == {e.id: e.split for e in dataset.examples(TASK)}
    given = again.graphs("y", "train")
    assert torch.equal(given[0].edge_index, graphs[0].edge_index) and torch.equal(given[0].y, graphs[0].y)


@pytest.mark.slow
def test_graphs_of_registered_and_resplit_datasets(tmp_path):
    core = pg.load_dataset("pdb_core")
    examples = core.examples(TASK)[:6]
    splits = {example.id: ("train", "val", "test")[i % 3] for i, example in enumerate(examples)}
    view = resplit(core, TASK, splits, "by place")
    for split in ("train", "val", "test"):
        graphs = view.graphs(TASK, split, cache=tmp_path)
        assert [graph.name for graph in graphs] == [name for name, own in splits.items() if own == split]
        assert all(len(graph.y) == graph.num_nodes for graph in graphs)


@pytest.mark.slow
def test_loaders_and_workers_read_the_graphs(dataset, tmp_path):
    graphs = dataset.graphs(TASK, "train", features=pg.models.get("gcn").features, cache=tmp_path)
    model = pg.build_model("gcn", graphs.target, seed=0).eval()
    loader = DataLoader(graphs, batch_size=3, num_workers=2)
    with torch.no_grad():
        rows = [len(model(batch)["logits"]) for batch in loader]
    assert sum(rows) == sum(graph.num_nodes for graph in graphs)
    assert len(pickle.loads(pickle.dumps(graphs))) == len(graphs)


def test_what_does_not_fit_raises(dataset, tmp_path):
    with pytest.raises(DatasetError, match="'trian'. Allowed .*train"):
        dataset.graphs(TASK, "trian", cache=tmp_path)
    with pytest.raises(LeakError, match="dssp"):
        dataset.graphs(TASK, "train", features=["dssp"], cache=tmp_path)


@pytest.mark.slow
def test_proteins_that_cannot_be_used_are_counted(folder, tmp_path):
    broken = tmp_path / "structures"
    shutil.copytree(folder, broken)
    (broken / "broken.pdb").write_text("ATOM      1  CA  ALA A   1      nonsense\n", encoding="utf-8")
    dataset = pg.load_dataset(broken, task=TASK)
    with pytest.warns(UserWarning, match="1 protein"):
        assert len(dataset.graphs(TASK, cache=tmp_path).failures) == 1
