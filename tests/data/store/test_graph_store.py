"""Graph stores return the graphs that were written, batches equal to collated ones, and typed errors for damage."""

from __future__ import annotations

import json
import os
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_writer import write_store
from protgraph.errors import DatasetError, FieldError

SIZES = (30, 7, 1, 12, 55)


def assert_same(a: Data, b: Data) -> None:
    """Compare every field and attribute bit for bit, NaN included."""
    assert set(a.keys()) == set(b.keys())
    for key, value in a.items():
        if isinstance(value, Tensor):
            assert value.dtype == b[key].dtype, key
            torch.testing.assert_close(value, b[key], rtol=0, atol=0, equal_nan=True)
        elif key == "residue_ids":
            assert [list(v) for v in value] == [list(v) for v in b[key]]
        else:
            assert value == b[key], key


@pytest.fixture(params=["ragged", "k-nearest", "per protein", "pairs"])
def graphs(request, make_graph):
    degree = {"k-nearest": 10}.get(request.param)
    level = {"per protein": "graph", "pairs": "pair"}.get(request.param, "node")
    made = [make_graph(n, degree=degree, level=level) for n in SIZES]
    made[0].backbone[3] = torch.nan
    return made


def test_a_store_returns_the_graphs_that_were_written(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs, info={"task": "t"})
    assert len(store) == len(SIZES) and store.sizes.tolist() == list(SIZES) and store.info == {"task": "t"}
    assert store.names == [g.name for g in graphs]
    for result, expected in zip(store, graphs, strict=True):
        assert_same(result, expected)
        assert result.validate()


@pytest.mark.parametrize("indices", [[0, 1, 2, 3, 4], [3], [4, 0, 0, 2], [2], [1, 2], [-1, 1]])
def test_a_batch_of_the_store_equals_the_collated_batch(graphs, tmp_path, indices):
    store = write_store(tmp_path / "s", graphs)
    ours, plain = store.collate(indices), collate([graphs[i] for i in indices])
    assert_same(ours, plain)
    assert ours.sizes == plain.sizes and ours.num_graphs == plain.num_graphs
    for result, expected in zip(ours.to_data_list(), plain.to_data_list(), strict=True):
        assert_same(result, expected)


def test_a_batch_of_the_store_equals_that_of_pyg(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs)
    ours, theirs = store.collate([4, 1, 3]), Batch.from_data_list([graphs[4], graphs[1], graphs[3]])
    for key in ("pos", "res_id", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(ours[key], theirs[key]), key


def test_targets_are_not_stored_if_the_degree_is_constant(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(n, degree=10) for n in SIZES])
    files = {p.stem for p in store.path.glob("*.npy")}
    assert "edge_source" in files and "edge_target" not in files
    assert store.collate([0, 4]).degree == 10
    assert "degree" not in store.collate([0, 1])


def test_a_store_accepts_proteins_with_and_without_a_constant_degree(make_graph, tmp_path):
    graphs = [make_graph(12, degree=10), make_graph(7), make_graph(30, degree=10)]
    store = write_store(tmp_path / "s", graphs)
    for result, expected in zip(store, graphs, strict=True):
        assert_same(result, expected)
    for indices, degree in (([0, 1], None), ([1], None), ([2, 0], 10)):
        ours, plain = store.collate(indices), collate([graphs[i] for i in indices])
        assert_same(ours, plain)
        assert ours.get("degree") == plain.get("degree") == degree


def test_changing_a_returned_graph_does_not_change_the_store(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of tensors on read-only memory
        for graph in (store[0], store.collate([0])):
            graph.pos.zero_()
            graph.edge_index.zero_()
    assert store[0].pos.abs().sum() > 0 and store[0].edge_index.sum() > 0


def test_an_index_out_of_range_raises(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    with pytest.raises(IndexError):
        store[1]
    with pytest.raises(IndexError):
        store.collate([0, 7])
    with pytest.raises(FieldError, match="empty"):
        store.collate([])


def test_a_pickled_store_opens_the_same_folder(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    text = pickle.dumps(store)
    assert len(text) < 1000
    assert_same(pickle.loads(text)[0], store[0])


def test_a_failed_write_leaves_no_files(make_graph, tmp_path):
    graph = make_graph(5)
    graph.report = {"when": object()}
    with pytest.raises(FieldError, match="report"):
        write_store(tmp_path / "s", [graph])
    assert os.listdir(tmp_path) == []


def test_a_store_has_the_permissions_of_other_folders(make_graph, tmp_path):
    (tmp_path / "other").mkdir()
    write_store(tmp_path / "s", [make_graph(5)])
    assert (tmp_path / "s").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_only_stores_are_replaced_and_only_with_overwrite(make_graph, tmp_path):
    write_store(tmp_path / "s", [make_graph(5)])
    with pytest.raises(DatasetError, match="overwrite"):
        write_store(tmp_path / "s", [make_graph(6)])
    assert write_store(tmp_path / "s", [make_graph(6)], overwrite=True).sizes.tolist() == [6]
    (tmp_path / "thesis").mkdir()
    with pytest.raises(DatasetError, match="thesis"):
        write_store(tmp_path / "thesis", [make_graph(5)], overwrite=True)


def test_no_graphs_and_graphs_of_different_fields_raise(make_graph, tmp_path):
    with pytest.raises(DatasetError):
        write_store(tmp_path / "s", [])
    odd = make_graph(6)
    del odd.aatype
    with pytest.raises(FieldError, match="'protein 5'.*'protein 6'.*'aatype'"):
        write_store(tmp_path / "s", [make_graph(5), odd])


def remove_meta(path):
    (path / "store.json").unlink()


def truncate_meta(path):
    (path / "store.json").write_text('{"format": "protgraph-store", "vers')


def later_version(path):
    meta = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(meta | {"version": 99}))


def remove_field(path):
    (path / "pos.npy").unlink()


def truncate_field(path):
    os.truncate(path / "pos.npy", 150)


def empty_field(path):
    os.truncate(path / "pos.npy", 0)


def other_shape(path):
    np.save(path / "pos.npy", np.zeros((4, 3), np.float32))


@pytest.mark.parametrize(
    ("damage", "data"),
    [
        (remove_meta, "store.json"),
        (truncate_meta, "store.json"),
        (later_version, "version 99"),
        (remove_field, "pos.npy"),
        (truncate_field, "pos.npy"),
        (empty_field, "pos.npy"),
        (other_shape, r"pos.npy.*\(4, 3\).*\(5, 3\)"),
    ],
)
def test_opening_a_damaged_store_raises_with_the_file(make_graph, tmp_path, damage, data):
    write_store(tmp_path / "s", [make_graph(5)])
    damage(tmp_path / "s")
    with pytest.raises(DatasetError, match=data):
        GraphStore(tmp_path / "s")


def test_verify_finds_one_changed_byte(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    store.verify()
    with open(store.path / "pos.npy", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(DatasetError, match="pos.npy"):
        GraphStore(store.path).verify()


def test_a_field_with_another_unit_raises(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    meta = json.loads((store.path / "store.json").read_text())
    meta["specs"]["pos"]["unit"] = "nm"
    (store.path / "store.json").write_text(json.dumps(meta))
    with pytest.raises(DatasetError, match="'pos'.*'nm'.*'Å'"):
        GraphStore(store.path)


def test_index_fields_of_plugins_are_shifted_as_by_collate(make_graph, tmp_path):
    register_field(FieldSpec("store_test_partner", "node", "index", "int64", shape=(), doc="another node"))
    graphs = [make_graph(n) for n in (4, 6)]
    for g in graphs:
        g.store_test_partner = torch.arange(g.num_nodes).flip(0)
    store = write_store(tmp_path / "s", graphs)
    expected = torch.tensor([3, 2, 1, 0, 9, 8, 7, 6, 5, 4])
    assert torch.equal(store.collate([0, 1]).store_test_partner, expected)
    assert_same(store.collate([1, 0]), collate([graphs[1], graphs[0]]))


def test_a_field_is_read_without_the_plugin_that_registers_it(make_graph, tmp_path):
    graph = make_graph(5)
    store = write_store(tmp_path / "s", [graph])
    meta = json.loads((store.path / "store.json").read_text())
    name = "store_test_foreign"
    os.rename(store.path / "pos.npy", store.path / f"{name}.npy")
    for part in ("specs", "level", "files"):
        meta[part][name] = meta[part].pop("pos")
    meta["specs"][name]["name"] = name
    meta["order"] = [name if key == "pos" else key for key in meta["order"]]
    (store.path / "store.json").write_text(json.dumps(meta))
    assert torch.equal(GraphStore(store.path)[0][name], graph.pos)
