"""PyG's own batching joins our graphs and those of to_pyg in any mixture and order, and gives them back."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataListLoader, DataLoader

import protgraph as pg
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.data.store.store_writer import write_store
from protgraph.ops import Edges
from protgraph.structure.residues.loss_report import LossReport

FEATURES = ("dihedral", "knn", "edge_distance")


REPORTS = {
    "1ajj": LossReport(models=37, hydrogens=150),
    "2erl": LossReport(waters=118, ligands={"ACT": 9}),
    "1crn": LossReport(),
}


@pytest.fixture(scope="module")
def graphs(structures_dir) -> list[ProteinGraph]:
    """Return graphs whose loss reports have different keys."""
    residues = [pg.clean(pg.load_structure(structures_dir / f"{name}.bcif")) for name in REPORTS]
    reports = REPORTS.values()
    return [pg.build_graph(replace(r, report=report), FEATURES) for r, report in zip(residues, reports, strict=True)]


def assert_same(a: Data, b: Data) -> None:
    assert set(a.keys()) == set(b.keys())
    for key, value in a.items():
        if isinstance(value, Tensor):
            assert value.dtype == b[key].dtype, key
            assert torch.equal(value.nan_to_num(1e9), b[key].nan_to_num(1e9)), key
        else:
            assert np.array_equal(value, b[key]), key


@pytest.mark.parametrize("plain", list(product((False, True), repeat=3)))
def test_any_mixture_in_any_order_equals_collate_and_is_given_back(graphs, plain):
    items = [pg.to_pyg(graph) if is_plain else graph for graph, is_plain in zip(graphs, plain, strict=True)]
    for order in permutations(range(3)):
        batch = Batch.from_data_list([items[i] for i in order])
        for key, value in collate([graphs[i] for i in order]).items():
            if isinstance(value, Tensor):
                assert torch.equal(batch[key].nan_to_num(1e9), value.nan_to_num(1e9)), key
        assert batch.name == [items[i].name for i in order]
        for example, i in zip(batch.to_data_list(), order, strict=True):
            assert_same(example, items[i])
        assert_same(batch.get_example(1), items[order[1]])


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_of_pyg_return_all_nodes(graphs, workers):
    items = [*graphs, *map(pg.to_pyg, graphs)]
    batches = list(DataLoader(items, batch_size=4, shuffle=True, num_workers=workers))
    assert sum(batch.num_nodes for batch in batches) == 2 * sum(graph.num_nodes for graph in graphs)
    (part, *_) = DataListLoader(items, batch_size=2)
    assert_same(part[1], graphs[1])


def test_models_return_the_same_for_batches_of_pyg(structures_dir):
    model = pg.build_model("gat", pg.Target("site", "node", "multilabel", 1), seed=0).eval()
    residues = [pg.clean(pg.load_structure(structures_dir / f"{name}.bcif")) for name in ("2erl", "1crn")]
    graphs = [model.plan.precompute(one) for one in residues]
    with torch.no_grad():
        expected = model(collate(graphs))["logits"]
        assert torch.equal(model(Batch.from_data_list(graphs))["logits"], expected)
        assert torch.equal(model(Batch.from_data_list([pg.to_pyg(graph) for graph in graphs]))["logits"], expected)


def test_a_common_degree_is_known_after_batching(graphs):
    assert Edges.from_graph(Batch.from_data_list(graphs)).degree == graphs[0].degree == 16
    fewer = graphs[2].clone()
    fewer.edge_index, fewer.degree = fewer.edge_index[:, ::4], np.int64(4)
    assert Edges.from_graph(Batch.from_data_list([graphs[0], fewer])).degree is None


def test_the_level_of_labels_is_known_after_batching(graphs):
    labeled = [graph.clone() for graph in graphs]
    for graph in labeled:
        graph.y, graph.y_level = torch.zeros(graph.num_nodes), "node"
    assert Batch.from_data_list(labeled).is_node_attr("y")


def test_labels_without_dimension_are_joined_as_in_pyg():
    graphs = [ProteinGraph(pos=torch.zeros(2, 3), y=torch.tensor(value), name="a") for value in (1.0, 2.0)]
    assert collate(graphs).y.tolist() == Batch.from_data_list(graphs).y.tolist() == [1.0, 2.0]


def test_graphs_of_a_store_are_batched(graphs, tmp_path):
    store = write_store(tmp_path / "store", graphs)
    batch = Batch.from_data_list(list(store))
    for example, graph in zip(batch.to_data_list(), graphs, strict=True):
        assert_same(example, graph)


def test_in_memory_datasets_of_pyg_return_the_graphs(graphs, tmp_path):
    InMemoryDataset.save(graphs, str(tmp_path / "graphs.pt"))
    dataset = InMemoryDataset()
    dataset.load(str(tmp_path / "graphs.pt"), data_cls=ProteinGraph)
    assert len(dataset) == 3
    for i, graph in enumerate(graphs):
        assert_same(dataset[i], graph)
