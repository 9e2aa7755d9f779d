"""Inner model selection and tests in ten folds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold

import protgraph as pg
from protgraph import registry
from protgraph.bench import nested_selection
from protgraph.bench.graph_candidates import GraphCandidate, graph_candidates
from protgraph.bench.nested_folds import NestedFold, read_folds, stratified_folds
from protgraph.bench.nested_selection import select_and_assess
from protgraph.bench.nested_table import assess_graph_model
from protgraph.cli.bench_tu import bench_tu_command
from protgraph.data.datasets.card import ReferenceScore
from protgraph.data.datasets.graph_list import GraphListDataset
from protgraph.errors import DatasetError, OptionError
from protgraph.train import FitConfig


def graph(number, label):
    """Return a graph of four nodes in a ring; one attribute is the class, the other is noise."""
    ring = torch.arange(4)
    edges = torch.stack([torch.cat([(ring + 1) % 4, (ring - 1) % 4]), ring.repeat(2)])
    noise = torch.rand(4, 1, generator=torch.Generator().manual_seed(number))
    return pg.ProteinGraph(
        pos=torch.full((4, 3), torch.nan),
        backbone=torch.full((4, 4, 3), torch.nan),
        backbone_mask=torch.zeros(4, 4, dtype=torch.bool),
        masked=torch.zeros(4, dtype=torch.bool),
        aatype=torch.full((4,), 20),
        chain=torch.zeros(4, dtype=torch.long),
        res_id=ring,
        seq_pos=ring,
        node_attributes=torch.cat([torch.full((4, 1), float(label)), noise], 1),
        edge_index=edges[:, torch.argsort(edges[1], stable=True)],
        y=torch.tensor([label]),
        y_level="graph",
        name=f"g{number:02}",
        split="train",
    )


@pytest.fixture(scope="module")
def dataset():
    """Return 40 graphs, a quarter of them of class 1."""
    return GraphListDataset([graph(i, int(i % 4 == 0)) for i in range(40)], task="kind")


def candidate(column, name):
    """Return a model that reads the label, or one whose inputs are standardized to nothing."""
    layers = [pg.component("embed", reads=["node_attributes"], dim=8), pg.component("sage", dim=8)]
    if column == "none":
        layers = [pg.component("constant")]
    inputs = {"node_attributes": "2x0e", "edge_index": "index"}
    config = FitConfig(epochs=15, lr=0.05, device="cpu")
    return GraphCandidate(name, pg.ModelSpec("m", layers=layers, inputs=inputs), config)


def test_folds_have_the_class_counts_of_scikit_learn(dataset):
    labels = np.array([int(i % 4 == 0) for i in range(40)])
    folds = stratified_folds(dataset, "kind", folds=5)
    other = [test for _, test in StratifiedKFold(5, shuffle=True, random_state=0).split(labels, labels)]
    assert sorted(i for fold in folds for i in fold.test) == list(range(40))
    for fold, expected in zip(folds, other, strict=True):
        assert np.bincount(labels[list(fold.test)]).tolist() == np.bincount(labels[expected]).tolist()
        assert sorted((*fold.train, *fold.val, *fold.test)) == list(range(40))
        assert len(fold.val) == 4 and labels[list(fold.val)].sum() == 1
    assert folds == stratified_folds(dataset, "kind", folds=5)
    assert folds != stratified_folds(dataset, "kind", folds=5, seed=1)


def test_the_candidate_that_is_better_on_validation_is_tested(dataset, tmp_path, monkeypatch):
    folds = stratified_folds(dataset, "kind", folds=5)[:2]
    candidates = [candidate("none", "constant"), candidate("both", "reads")]
    seen = []
    train = nested_selection.fit

    def spy(model, data, task, *, config):
        seen.append((model.layers[0].name, config.seed, sorted({e.split for e in data.examples(task)})))
        return train(model, data, task, config=config)

    monkeypatch.setattr(nested_selection, "fit", spy)
    rows = tmp_path / "rows.jsonl"
    result = select_and_assess(candidates, dataset, "kind", folds, runs=2, rows=rows)
    assert result.chosen == ("reads", "reads")
    tests = [run.test for run in result.runs if run.test is not None]
    assert len(tests) == 4 and min(tests) > 0.75
    assert result.folds == ((tests[0] + tests[1]) / 2, (tests[2] + tests[3]) / 2)
    assert result.sd == pytest.approx(np.std(result.folds))
    assert str(result) == f"{100 * np.mean(tests):.1f} ± {100 * np.std(result.folds):.1f}"
    selected, tested = ["train", "val"], ["test", "train", "val"]
    assert seen == 2 * [
        *(("constant", 0, selected), ("embed", 0, selected)),
        *(("embed", 1, tested), ("embed", 2, tested)),
    ]
    assert [run.test for run in result.runs[:2]] == [None, None]
    with rows.open("a") as file:
        file.write('{"key": "half of a li')
    again = select_and_assess(candidates, dataset, "kind", folds, runs=2, rows=rows)
    assert again == result and len(seen) == 8  # nothing was trained again
    more = select_and_assess(candidates, dataset, "kind", folds, runs=3, rows=rows)
    assert len(seen) == 10 and more.runs[:4] == result.runs[:4]
    other = [replace(one, config=replace(one.config, lr=0.04)) for one in candidates]
    select_and_assess(other, dataset, "kind", folds[:1], runs=1, rows=rows)
    assert len(seen) == 13  # other options are other runs


def test_folds_of_a_file(dataset, tmp_path):
    data = [{"test": [0, 1], "model_selection": [{"train": list(range(6, 40)), "validation": [2, 3, 4, 5]}]}]
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(data))
    assert read_folds(path, dataset, "kind") == [NestedFold(tuple(range(6, 40)), (2, 3, 4, 5), (0, 1))]
    data[0]["test"] = [0]
    path.write_text(json.dumps(data))
    with pytest.raises(DatasetError, match="fold 0 .* 40 graphs"):
        read_folds(path, dataset, "kind")
    path.write_text("[{}]")
    with pytest.raises(DatasetError, match="model_selection"):
        read_folds(path, dataset, "kind")


@pytest.mark.parametrize("name, small, full", [("gin", 2, 32), ("sage", 2, 36)])
def test_every_candidate_is_a_model(dataset, name, small, full):
    target = dataset.target("kind")
    for grid, count in (("small", small), ("full", full)):
        found = graph_candidates(name, 2, nodes_per_graph=4.0, grid=grid)
        assert len(found) == len({one.name for one in found}) == count
        assert all(one.config.weight_decay == 0 for one in found)
    for one in found[:4]:
        assert pg.build_model(one.model, target).spec.dead_layers() == []
    with pytest.raises(OptionError, match="'gcn'"):
        graph_candidates("gcn", 2, nodes_per_graph=4.0)


def test_the_readout_of_gin_has_all_layers(dataset):
    (first, _) = graph_candidates("gin", 2, nodes_per_graph=4.0)
    model = pg.build_model(first.model, dataset.target("kind"))
    assert model.head.mlp[0].in_features == 5 * 64 and model.head.pool.mode == "sum"


class Rings(GraphListDataset):
    """The graphs of ``dataset`` under a registry name, with a published score."""

    def __init__(self):
        super().__init__([graph(i, int(i % 4 == 0)) for i in range(40)], task="kind")
        score = ReferenceScore(method="GIN", metric="accuracy", value=0.5)
        cards = {"kind": replace(self.card.tasks["kind"], published=(score,))}
        self.card = replace(self.card, name="rings", tasks=cards)


def test_the_command_prints_the_table_beside_published_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry.datasets, "_session", {})
    registry.datasets.register("rings", Rings)
    folds = [{"test": [0, 1], "model_selection": [{"train": list(range(6, 40)), "validation": [2, 3, 4, 5]}]}]
    (tmp_path / "folds.json").write_text(json.dumps(folds))
    options = {"models": ["gin"], "folds": tmp_path / "folds.json", "epochs": 1, "runs": 1, "out": tmp_path}
    bench_tu_command(["rings"], **options)
    out = capsys.readouterr()
    (line,) = [line for line in out.out.splitlines() if line.startswith("| rings")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["rings", "GIN"] and cells[3:] == ["50.0", "1", "3"]
    assert (tmp_path / "tu/table.md").read_text().strip() == out.out.strip()
    rows = [json.loads(line) for line in (tmp_path / "tu/rings_gin.jsonl").read_text().splitlines()]
    assert [(row["fold"], row["seed"]) for row in rows] == [(0, 0), (0, 0), (0, 1)]
    assert cells[2] == f"{100 * rows[2]['test']:.1f} ± 0.0"
    bench_tu_command(["rings"], **options)
    assert len((tmp_path / "tu/rings_gin.jsonl").read_text().splitlines()) == 3
    with pytest.raises(OptionError, match="2 datasets"):
        bench_tu_command(["rings", "tu_enzymes"], **options)


def test_datasets_of_files_are_refused():
    data = pg.load_dataset("pdb_core", task="ligand_binding")
    with pytest.raises(DatasetError, match="pdb_core"):
        assess_graph_model("gin", data, "ligand_binding", folds=[])
