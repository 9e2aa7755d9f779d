"""Graph stores return the graphs that were written, batches equal to collated ones, and typed errors for damage."""

from __future__ import annotations

import json
import os
import pickle
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.data.graph import fields as field_table
from protgraph.data.graph.fields import FieldSpec, is_registered, register_field
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.graph_shard import map_shard_file, write_shard_file
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_description import StoreDescription, shard_path
from protgraph.data.store.store_writer import write_shard, write_store
from protgraph.errors import DatasetError, FieldError

SIZES = (30, 7, 1, 12, 55)
NUMBERS = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)


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


def test_a_batch_of_the_store_is_pickled_and_its_edges_are_contiguous(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs)
    for indices in ([0, 1, 2], [3], [4, 0, 0, 2]):
        batch = store.collate(indices)
        assert batch.edge_index.is_contiguous()
        assert_same(pickle.loads(pickle.dumps(batch))[0], batch[0])


def test_a_batch_of_some_fields_equals_the_whole_batch_in_these(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs)
    whole, part = store.collate([2, 0, 1]), store.collate([2, 0, 1], fields={"pos", "edge_index", "name"})
    assert set(whole.keys()) - set(part.keys()) == set(graphs[0].keys()) - {"pos", "edge_index", "name", "degree"}
    assert torch.equal(whole.pos, part.pos) and torch.equal(whole.edge_index, part.edge_index)
    assert whole.name == part.name and whole.sizes == part.sizes and torch.equal(whole.batch, part.batch)


def test_a_batch_of_the_store_equals_that_of_pyg(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs)
    ours, theirs = store.collate([4, 1, 3]), Batch.from_data_list([graphs[4], graphs[1], graphs[3]])
    for key in ("pos", "res_id", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(ours[key], theirs[key]), key


def test_targets_are_not_stored_if_the_degree_is_constant(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(n, degree=10) for n in SIZES])
    assert "edge_source" in store.shard(0).arrays and "edge_target" not in store.shard(0).arrays
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


def remove_shard(path):
    shard_path(path, "graphs").unlink()


def truncate_shard(path):
    os.truncate(shard_path(path, "graphs"), 150)


def empty_shard(path):
    os.truncate(shard_path(path, "graphs"), 0)


@pytest.mark.parametrize(
    ("damage", "data"),
    [
        (remove_meta, "store.json"),
        (truncate_meta, "store.json"),
        (later_version, "version 99"),
        (remove_shard, "graphs.safetensors"),
        (truncate_shard, "graphs.safetensors has 150 bytes"),
        (empty_shard, "graphs.safetensors has 0 bytes"),
    ],
)
def test_opening_a_damaged_store_raises_with_the_file(make_graph, tmp_path, damage, data):
    write_store(tmp_path / "s", [make_graph(5)])
    damage(tmp_path / "s")
    with pytest.raises(DatasetError, match=data):
        GraphStore(tmp_path / "s")


@pytest.mark.parametrize("content", [b"", b"\xff" * 50, b"\x02" + bytes(7) + b"{}", b"\x02" + bytes(7) + b"[]"])
def test_a_damaged_shard_raises_with_its_file(tmp_path, content):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(DatasetError, match=r"x.safetensors is missing or incomplete"):
        map_shard_file(tmp_path / "x.safetensors")


def test_verify_finds_one_changed_byte(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    store.verify()
    with open(shard_path(store.path, "graphs"), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(DatasetError, match="graphs.safetensors"):
        GraphStore(store.path).verify()


def test_a_shard_is_a_safetensors_file(make_graph, tmp_path):
    graph = make_graph(7)
    store = write_store(tmp_path / "s", [graph])
    tensors = load_file(shard_path(store.path, "graphs"))
    for key in ("pos", "res_id", "y"):
        assert torch.equal(tensors[key], graph[key])
    assert torch.equal(tensors["edge_source"].long(), graph.edge_index[0])


def test_arrays_of_every_type_are_read_as_they_were_written(tmp_path):
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in NUMBERS}
    arrays |= {"text": np.array(["", "Å", "abc"]), "table": np.array([["a", "bc"]]), "none": np.zeros((0, 3), "f4")}
    arrays |= {"no text": np.array([], "<U4"), "scalar": np.float64(3)}
    sums = {write_shard_file(tmp_path / str(i), arrays, {"plain": {"a": [1, None]}})[0] for i in range(2)}
    file = map_shard_file(tmp_path / "0")
    assert len(sums) == 1 and file.plain("plain") == {"a": [1, None]} and set(file.arrays) == set(arrays)
    for name, array in arrays.items():
        assert file.arrays[name].dtype == array.dtype and np.array_equal(file.arrays[name], array), name
        assert file.arrays[name].flags.aligned, name


def test_an_open_store_keeps_no_file_open(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    assert len(store[0].pos) == 5
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    held = [os.readlink(link) for link in links if os.path.lexists(link)]
    assert held and not [path for path in held if str(tmp_path) in path]


def sharded(folder, graphs, *sizes):
    """Write a store with shards of these numbers of graphs."""
    entries, layout = [], {}
    for number, size in enumerate(sizes):
        part, graphs = graphs[:size], graphs[size:]
        entry, own = write_shard(folder, str(number), part)
        entries.append(entry)
        layout = own or layout
    StoreDescription(layout, {}, tuple(entries)).write(folder)
    return GraphStore(folder)


@pytest.mark.parametrize("sizes", [(1, 4), (0, 2, 0, 2, 1, 0), (1, 1, 1, 1, 1)])
def test_a_store_of_several_shards_equals_that_of_one(graphs, tmp_path, sizes):
    one, several = write_store(tmp_path / "one", graphs), sharded(tmp_path / "several", graphs, *sizes)
    assert len(several) == len(one) and several.names == one.names and several.sizes.tolist() == list(SIZES)
    assert several.num_residues == one.num_residues
    for a, b in zip(several, one, strict=True):
        assert_same(a, b)
    for indices in ([4, 0, 0, 2], [-1, 1], [2], [0, 1, 2, 3, 4]):
        assert_same(several.collate(indices), one.collate(indices))
    assert [several.shard_of(i) for i in range(5)] == [(s, i) for s, n in enumerate(sizes) for i in range(n)]
    assert np.array_equal(several.values("pos", 3), graphs[3].pos)


def test_opening_a_store_opens_no_shard(make_graph, tmp_path, opened_files):
    sharded(tmp_path / "s", [make_graph(n) for n in SIZES], 1, 1, 1, 1, 1)
    opened_files.clear()
    store = GraphStore(tmp_path / "s")
    assert len(store) == 5 and store.num_residues == sum(SIZES)
    assert [name for name in opened_files if name.endswith("safetensors")] == [] and not store._open
    store.collate([0, 3])
    assert sorted(store._open) == [0, 3]


def test_a_shard_with_other_fields_raises(make_graph, tmp_path):
    odd = make_graph(6)
    del odd.aatype
    store = sharded(tmp_path / "s", [make_graph(5), odd, make_graph(7)], 1, 1, 1)
    with pytest.raises(DatasetError, match="1.safetensors"):
        store[1]


def test_a_field_with_another_unit_raises(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    meta = json.loads((store.path / "store.json").read_text())
    meta["layout"]["specs"]["pos"]["unit"] = "nm"
    del meta["sha256"]
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


def test_a_field_is_read_without_the_plugin_that_registers_it(make_graph, tmp_path, monkeypatch):
    graph, name = make_graph(5), "store_test_foreign"
    with monkeypatch.context() as patch:
        patch.setattr(field_table, "_TABLE", dict(field_table._TABLE))
        register_field(FieldSpec(name, "node", "index", "int64", shape=(), doc="of a plugin"))
        graph[name] = torch.arange(5).flip(0)
        store = write_store(tmp_path / "s", [graph, graph])
    assert not is_registered(name)
    assert torch.equal(GraphStore(store.path).collate([0, 1])[name], torch.tensor([4, 3, 2, 1, 0, 9, 8, 7, 6, 5]))
