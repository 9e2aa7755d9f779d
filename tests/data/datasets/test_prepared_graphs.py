"""Prepared datasets of graphs: archives of TUDataset against PyG's parser, same bytes twice, training."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_datasets.tu_graphs import TuEnzymes, TuProteins
from torch_geometric.io import read_tu_data

import protgraph as pg
from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.data.datasets.prepared_graphs import stratified_splits
from protgraph.data.datasets.tu_archive import read_tu_archive
from protgraph.errors import DatasetError
from protgraph.train import FitConfig, fit

CARD = """
name = "tiny_graphs"
version = "1"
license = "CC0-1.0"
citation = "none"
description = "Random graphs."
[splits]
rule = "by name"
train = {{ proteins = 16, residues = {train} }}
val = {{ proteins = 2, residues = {val} }}
test = {{ proteins = 2, residues = {test} }}
[tasks.kind]
level = "graph"
kind = "classification"
names = ["a", "b"]
labels = "Random."
examples = "All graphs."
splits.train = {{ proteins = 16, residues = {train}, labeled = 16, per_class = [8, 8] }}
splits.val = {{ proteins = 2, residues = {val}, labeled = 2, per_class = [1, 1] }}
splits.test = {{ proteins = 2, residues = {test}, labeled = 2, per_class = [1, 1] }}
"""


def write_archive(folder: Path, *, damage: bool = False) -> tuple[Path, np.ndarray]:
    """Write an archive of 20 random graphs with repeated edges in any order; return it and the numbers of nodes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    nodes = rng.integers(3, 9, 20)
    first = np.cumsum(nodes) - nodes
    edges = [first[i] + rng.permutation(nodes[i])[:2] + 1 for i in range(20) for _ in range(6)]
    edges += [edge[::-1] for edge in edges]
    edges += [np.array([1, nodes[0] + 1])] if damage else []
    texts = {
        "A": "\n".join(f"{a}, {b}" for a, b in np.array(edges)[rng.permutation(len(edges))]),
        "graph_indicator": "\n".join(str(i + 1) for i in range(20) for _ in range(nodes[i])),
        "graph_labels": "\n".join(str(i % 2 + 1) for i in range(20)),
        "node_labels": "\n".join(map(str, rng.permutation(np.arange(nodes.sum()) % 3))),
        "node_attributes": "\n".join(f"{a:.3f}, {b:.3f}" for a, b in rng.normal(size=(nodes.sum(), 2))),
    }
    with zipfile.ZipFile(folder / "TINY.zip", "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"TINY//TINY_{name}.txt", text + "\n")
    return folder / "TINY.zip", nodes


def tiny(card: Path, folder: Path) -> TuEnzymes:
    """Return a dataset of the archive."""

    class TinyGraphs(TuEnzymes):
        card_path, archive = card, "TINY.zip"

    return TinyGraphs(folder=str(folder))


def card_of(nodes: np.ndarray, path: Path) -> Path:
    splits = stratified_splits([f"tiny_graphs_{i + 1:04d}" for i in range(20)], np.arange(20) % 2)
    path.write_text(CARD.format(**{s: nodes[np.array(splits) == s].sum() for s in ("train", "val", "test")}))
    return path


def test_prepared_twice_is_the_same_bytes_in_both_layouts(tmp_path):
    _, nodes = write_archive(tmp_path / "source")
    write_archive(tmp_path / "repository" / "data")
    card = card_of(nodes, tmp_path / "card.toml")
    for name, source in (("a", "source"), ("b", "source"), ("c", "repository")):
        assert prepare_dataset(tiny(card, tmp_path / name), tmp_path / source).proteins == 20
    contents = [{p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in "abc"]
    assert contents[0] == contents[1] == contents[2] and set(contents[0]) == {
        "examples.tsv",
        "graphs.npz",
        "manifest.tsv",
    }
    (tmp_path / "b" / "graphs.npz").write_bytes(b"cut")
    with pytest.raises(DatasetError, match=r"graphs\.npz"):
        prepare_dataset(tiny(card, tmp_path / "b"), tmp_path / "source")


def test_a_model_of_the_given_fields_is_trained_on_them(tmp_path):
    _, nodes = write_archive(tmp_path / "source")
    dataset = tiny(card_of(nodes, tmp_path / "card.toml"), tmp_path / "a")
    prepare_dataset(dataset, tmp_path / "source")
    layers = [pg.component("embed", reads=["node_attributes"], dim=8), pg.component("gin", dim=8)]
    spec = pg.ModelSpec("graphs", layers=layers, inputs={"node_attributes": "5x0e", "edge_index": "index"})
    result = fit(spec, dataset, "kind", config=FitConfig(epochs=1, device="cpu"))
    assert result.metrics["val"]


@pytest.mark.parametrize("use_attributes", [True, False])
def test_graphs_equal_those_of_pyg(use_attributes, tmp_path):
    path, _ = write_archive(tmp_path / "source")
    _compare_with_pyg(path, tmp_path / "raw", use_attributes)


def test_an_archive_whose_edges_join_two_graphs_or_that_lacks_a_file_is_refused(tmp_path):
    path, _ = write_archive(tmp_path / "source", damage=True)
    with pytest.raises(DatasetError, match=r"TINY\.zip"):
        read_tu_archive(path, use_attributes=False)
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(DatasetError, match=r"_A\.txt"):
        read_tu_archive(tmp_path / "empty.zip", use_attributes=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TuEnzymes, TuProteins])
def test_the_real_archives_give_the_counts_of_the_cards_and_the_graphs_of_pyg(kind, shared_data, tmp_path):
    source = shared_data / "benchmark" / "tudataset"
    dataset = kind(folder=str(tmp_path / "a"))
    prepare_dataset(dataset, source)  # raises where counts differ
    task = dataset.tasks()[0]
    assert [e.id for e in dataset.examples(task)] == list(dataset.rows)
    _compare_with_pyg(source / kind.archive, tmp_path / "raw", kind.use_attributes)
    graph, y = dataset.labeled_graph(dataset.examples(task)[0])
    graph.y, graph.y_level = y, "graph"
    graph.validate()


def _compare_with_pyg(path: Path, raw: Path, use_attributes: bool) -> None:
    table = read_tu_archive(path, use_attributes=use_attributes)
    with zipfile.ZipFile(path) as archive:
        raw.mkdir()
        for name in archive.namelist():
            if name.endswith(".txt"):
                (raw / name.rsplit("/", 1)[1]).write_bytes(archive.read(name))
    data, slices, sizes = read_tu_data(str(raw), path.stem)
    labels, attributes = data.x[:, sizes["num_node_attributes"] :], data.x[:, : sizes["num_node_attributes"]]
    expected = torch.cat([labels, attributes], 1) if use_attributes else labels
    torch.testing.assert_close(torch.from_numpy(table.attributes), expected)
    assert table.labels.tolist() == data.y.tolist()
    assert (
        table.nodes.tolist() == slices["x"].diff().tolist()
        and table.edges.tolist() == slices["edge_index"].diff().tolist()
    )
    for i, (first, end) in enumerate(
        zip(slices["edge_index"][:-1].tolist(), slices["edge_index"][1:].tolist(), strict=True)
    ):
        start = int(table.edges[:i].sum())
        ours = table.edge_index[:, start : start + int(table.edges[i])]
        assert {*map(tuple, ours.T.tolist())} == {*map(tuple, data.edge_index[:, first:end].T.tolist())}, i
