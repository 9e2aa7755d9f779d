"""Lists of labeled graphs as datasets."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import protgraph as pg
from protgraph.data.datasets.graph_list import GraphListDataset
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, FieldError, LabelError, UnknownNameError, WiringError
from protgraph.labels import load_dataset
from protgraph.train import FitConfig

NAMES = ("1ajj", "1crn", "1vii", "2erl", "1bx8", "1fas")
SPLITS = ("train", "train", "train", "val", "val", "test")
FEATURES = ["dihedral", pg.component("knn", k=8)]


@pytest.fixture(scope="module")
def graphs(structures_dir):
    """Return six graphs with a number and a split each."""
    found = []
    for i, (name, split) in enumerate(zip(NAMES, SPLITS, strict=True)):
        residues = pg.clean(pg.load_structure(structures_dir / f"{name}.bcif"))
        graph = pg.build_graph(residues, FEATURES)
        graph.name, graph.y, graph.split = name, torch.tensor([i + 0.5]), split
        found.append(graph)
    return found


def test_training_on_graphs_gives_the_weights_of_training_on_files(graphs, structures_dir, tmp_path):
    (tmp_path / "files").mkdir()
    for name in NAMES:
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "files")
    rows = [f"{name},{i + 0.5},{split}" for i, (name, split) in enumerate(zip(NAMES, SPLITS, strict=True))]
    (tmp_path / "t.csv").write_text("file,size,split\n" + "\n".join(rows) + "\n")
    layers = [pg.component("embed", reads=["dihedral"], dim=8), pg.component("gcn", dim=8)]
    model = pg.ModelSpec("tiny", features=FEATURES, layers=layers)
    config = FitConfig(epochs=1, device="cpu")
    files = load_dataset(tmp_path / "files", labels=tmp_path / "t.csv", cache=tmp_path)
    expected = pg.fit(model, files, "size", config=config, cache=tmp_path)
    found = pg.fit(model, graphs, "size", config=config, cache=tmp_path)
    assert found.metrics == expected.metrics and found.sizes == expected.sizes
    for key, value in expected.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[key], value), key


@pytest.mark.parametrize(
    ("y", "target"),
    [
        (torch.tensor([0, 2]), Target("t", "graph", "classification", 3)),
        (torch.tensor([0.5, 2]), Target("t", "graph", "regression", 1)),
        (torch.tensor([0.0, 1]), Target("t", "graph", "multilabel", 1)),
        (torch.tensor([True, False]), Target("t", "graph", "multilabel", 1)),
    ],
)
def test_kind_of_labels_per_protein(graphs, y, target):
    for form in (lambda value: value, lambda value: value[None]):
        labeled = [graph.clone() for graph in graphs[:2]]
        for graph, value in zip(labeled, y, strict=True):
            graph.y = form(value)
        data = GraphListDataset([*labeled], task="t")
        assert data.target("t") == target and data.splits("t") == ["train"]


def test_labels_per_residue_are_counted_and_split(graphs):
    labeled = [graph.clone() for graph in graphs]
    for graph in labeled:
        graph.y = (graph.aatype == 0).long()
        del graph.split
    data = load_dataset(labeled, task="alanine", seed=1)
    assert data.target("alanine") == Target("alanine", "node", "classification", 2)
    counts = data.card.tasks["alanine"].counts
    assert sum(c.per_class[1] for c in counts.values()) == sum(int(g.y.sum()) for g in labeled)
    assert set(counts) == {"train", "val", "test"} and "balanced" in data.card.split_rule
    assert list(counts) == ["train", "val", "test"]
    assert len({load_dataset(labeled, task="alanine", seed=seed).version for seed in range(6)}) > 1
    assert "6 proteins" in str(data.describe())


def test_invalid_lists_are_typed_errors(graphs, tmp_path):
    bare = graphs[0].clone()
    del bare.y
    half = graphs[1].clone()
    del half.split
    long = graphs[1].clone()
    long.y = torch.zeros(3)
    same = graphs[0].clone()
    cases = [([bare], LabelError, "1ajj"), ([graphs[0], half], DatasetError, "1crn"), ([long], LabelError, "3 rows")]
    for given, error, word in [*cases, ([graphs[0], same], DatasetError, "1ajj"), ([], DatasetError, "empty")]:
        with pytest.raises(error, match=word):
            GraphListDataset(given)
    with pytest.raises(DatasetError, match="edge_index|lacks"):
        model = pg.ModelSpec("m", features=["sasa"], layers=[pg.component("embed", reads=["sasa"], dim=4)])
        pg.fit(model, graphs, "size", config=FitConfig(epochs=1, device="cpu"), cache=tmp_path)
    with pytest.raises(DatasetError, match="inverse_folding"):
        labeled = [graph.clone() for graph in graphs]
        for graph in labeled:
            graph.y = graph.aatype
        pg.fit("gcn", labeled, "inverse_folding", config=FitConfig(epochs=1, device="cpu"), cache=tmp_path)
    assert np.isfinite(graphs[0].pos).all()


def given_graphs(count=24):
    """Return graphs of three nodes without a structure; the class is in the first attribute of one node."""
    found = []
    for i in range(count):
        attributes = torch.zeros(3, 2)
        attributes[i % 3, 0] = i % 2
        missing = {"pos": torch.full((3, 3), torch.nan), "backbone": torch.full((3, 4, 3), torch.nan)}
        rows = {name: torch.arange(3) for name in ("res_id", "seq_pos")} | {"chain": torch.zeros(3, dtype=torch.long)}
        rows |= {"aatype": torch.full((3,), 20), "masked": torch.zeros(3, dtype=torch.bool)}
        edges = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])
        graph = pg.ProteinGraph(
            **missing,
            **rows,
            backbone_mask=torch.zeros(3, 4, dtype=torch.bool),
            node_attributes=attributes,
            edge_index=edges,
            y=torch.tensor([i % 2]),
            y_level="graph",
            name=f"g{i:02}",
            split=("train", "train", "val", "test")[i // 2 % 4],
        )
        found.append(graph)
    return found


GIVEN = {"node_attributes": "2x0e", "edge_index": "index"}
EMBED = pg.component("embed", reads=["node_attributes"], dim=8)


def test_a_model_with_inputs_trains_on_graphs_that_have_them():
    model = pg.ModelSpec("given", layers=[EMBED, pg.component("gin", dim=8)], inputs=GIVEN)
    assert pg.ModelSpec.from_dict(model.to_dict()) == model
    result = pg.fit(model, given_graphs(), "parity", config=FitConfig(epochs=30, lr=0.03, device="cpu"))
    assert result.test["accuracy"] == 1.0


def test_inputs_are_not_computed_from_residues(structures_dir):
    model = pg.ModelSpec("given", layers=[EMBED, "gin"], inputs=GIVEN)
    residues = pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))
    with pytest.raises(FieldError, match="1crn: node_attributes, edge_index"):
        model.plan().precompute(residues)


def test_edges_are_given_or_made(graphs):
    with pytest.raises(WiringError):
        pg.ModelSpec("both", features=["knn"], layers=[EMBED, "gin"], inputs=GIVEN).plan()
    with pytest.raises(UnknownNameError, match="charges"):
        pg.ModelSpec("no field", layers=[EMBED], inputs={"charges": "1x0e"}).plan()
    with pytest.raises(DatasetError, match="'1ajj' lacks the fields node_attributes"):
        pg.fit(pg.ModelSpec("given", layers=[EMBED], inputs={"node_attributes": "2x0e"}), graphs, "size")


def own_data(count: int = 40) -> list[Data]:
    """Return graphs of PyG that are no proteins; the label is the first feature."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for i in range(count):
        n = 4 + i % 3
        x = torch.cat([torch.full((n, 1), float(i % 2)), torch.randn(n, 2, generator=generator)], 1)
        index = torch.randint(0, n, (2, 2 * n), generator=generator)
        edge_attr = torch.randn(2 * n, 2, generator=generator)
        found.append(Data(x=x, edge_index=index, edge_attr=edge_attr, y=torch.tensor([i % 2])))
    return found


def test_graphs_of_pyg_train_a_model_without_dummy_fields():
    inputs = {"x": "3x0e", "edge_index": "index", "edge_attr": "2x0e"}
    layers = [
        pg.component("embed", reads=["x"], dim=16),
        pg.component("mpnn", dim=16, reads={"edge_attr": "edge_attr"}),
    ]
    model = pg.ModelSpec("own", layers=layers, inputs=inputs)
    config = FitConfig(epochs=20, lr=0.01, device="cpu")
    result = pg.fit(model, own_data(), config=config)  # the list has one task
    assert result.task.name == "y" and result.test["accuracy"] == 1.0
    batch = next(iter(DataLoader(own_data(), batch_size=4)))
    sorted_batch = next(iter(DataLoader([pg.from_pyg(graph) for graph in own_data()], batch_size=4)))
    assert result.model(sorted_batch)["logits"].shape == (4, 2) and batch.num_graphs == 4


def test_labels_of_nodes_of_own_graphs_are_learned():
    graphs = own_data()
    for graph in graphs:
        graph.y = (graph.x[:, 1] > 0).long()
    layers = [pg.component("embed", reads=["x"], dim=8), pg.component("mlp", dim=8)]
    model = pg.ModelSpec("own", layers=layers, inputs={"x": "3x0e"})
    result = pg.fit(model, graphs, config=FitConfig(epochs=40, lr=0.05, device="cpu"))
    assert result.test["accuracy"] > 0.8


@pytest.mark.parametrize("name", ["gcn", "bert"])
def test_models_of_proteins_name_the_fields_that_own_graphs_lack(name):
    with pytest.raises(DatasetError, match="'graph 0' lacks the fields a"):
        pg.fit(name, own_data(), config=FitConfig(epochs=1, device="cpu"))


def test_a_dataset_of_several_tasks_needs_one():
    with pytest.raises(DatasetError, match="10 tasks"):
        pg.fit("gcn", "pdb_core")
