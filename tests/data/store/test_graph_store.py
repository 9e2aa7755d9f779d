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
    """Every field and attribute of both, bit for bit, NaN included."""
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


def test_reading_gives_what_was_written(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs, info={"task": "t"})
    assert len(store) == len(SIZES) and store.sizes.tolist() == list(SIZES) and store.info == {"task": "t"}
    assert store.names == [g.name for g in graphs]
    for got, given in zip(store, graphs, strict=True):
        assert_same(got, given)
        got.validate()


@pytest.mark.parametrize("indices", [[0, 1, 2, 3, 4], [3], [4, 0, 0, 2], [2], [1, 2], [-1, 1]])
def test_a_batch_from_the_store_is_the_collated_batch(graphs, tmp_path, indices):
    store = write_store(tmp_path / "s", graphs)
    ours, plain = store.collate(indices), collate([graphs[i] for i in indices])
    assert_same(ours, plain)
    assert ours.sizes == plain.sizes and ours.num_graphs == plain.num_graphs
    for got, given in zip(ours.to_data_list(), plain.to_data_list(), strict=True):
        assert_same(got, given)


def test_a_batch_from_the_store_is_pygs_batch(graphs, tmp_path):
    store = write_store(tmp_path / "s", graphs)
    ours, theirs = store.collate([4, 1, 3]), Batch.from_data_list([graphs[4], graphs[1], graphs[3]])
    for key in ("pos", "res_id", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(ours[key], theirs[key]), key


def test_of_a_constant_degree_only_sources_are_kept(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(n, degree=10) for n in SIZES])
    files = {p.stem for p in store.path.glob("*.npy")}
    assert "edge_source" in files and "edge_target" not in files
    assert store.collate([0, 4]).degree == 10
    assert "degree" not in store.collate([0, 1])


def test_proteins_with_and_without_a_constant_degree_go_together(make_graph, tmp_path):
    graphs = [make_graph(12, degree=10), make_graph(7), make_graph(30, degree=10)]
    store = write_store(tmp_path / "s", graphs)
    for got, given in zip(store, graphs, strict=True):
        assert_same(got, given)
    for indices, degree in (([0, 1], None), ([1], None), ([2, 0], 10)):
        ours, plain = store.collate(indices), collate([graphs[i] for i in indices])
        assert_same(ours, plain)
        assert ours.get("degree") == plain.get("degree") == degree


def test_a_reader_may_change_what_it_gets(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of tensors on read-only memory
        for got in (store[0], store.collate([0])):
            got.pos.zero_()
            got.edge_index.zero_()
    assert store[0].pos.abs().sum() > 0 and store[0].edge_index.sum() > 0


def test_an_index_beyond_the_end_is_an_index_error(make_graph, tmp_path):
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


def test_a_store_that_could_not_be_finished_is_not_there(make_graph, tmp_path):
    graph = make_graph(5)
    graph.report = {"when": object()}
    with pytest.raises(FieldError, match="report"):
        write_store(tmp_path / "s", [graph])
    assert os.listdir(tmp_path) == []


def test_everybody_reads_it_who_may_read_other_folders(make_graph, tmp_path):
    (tmp_path / "other").mkdir()
    write_store(tmp_path / "s", [make_graph(5)])
    assert (tmp_path / "s").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_only_a_store_is_ever_replaced_and_only_when_asked(make_graph, tmp_path):
    write_store(tmp_path / "s", [make_graph(5)])
    with pytest.raises(DatasetError, match="overwrite"):
        write_store(tmp_path / "s", [make_graph(6)])
    assert write_store(tmp_path / "s", [make_graph(6)], overwrite=True).sizes.tolist() == [6]
    (tmp_path / "thesis").mkdir()
    with pytest.raises(DatasetError, match="thesis"):
        write_store(tmp_path / "thesis", [make_graph(5)], overwrite=True)


def test_nothing_to_write_and_differing_fields_are_refused(make_graph, tmp_path):
    with pytest.raises(DatasetError):
        write_store(tmp_path / "s", [])
    odd = make_graph(6)
    del odd.aatype
    with pytest.raises(FieldError, match=r"'protein 5' and 'protein 6' differ in fields: \['aatype'\]"):
        write_store(tmp_path / "s", [make_graph(5), odd])


def drop_meta(path):
    (path / "store.json").unlink()


def spoil_meta(path):
    (path / "store.json").write_text('{"format": "protgraph-store", "vers')


def later_version(path):
    meta = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(meta | {"version": 99}))


def drop_field(path):
    (path / "pos.npy").unlink()


def cut_field(path):
    os.truncate(path / "pos.npy", 150)


def empty_field(path):
    os.truncate(path / "pos.npy", 0)


def other_shape(path):
    np.save(path / "pos.npy", np.zeros((4, 3), np.float32))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_meta, "store.json"),
        (spoil_meta, "store.json"),
        (later_version, "version 99"),
        (drop_field, "pos.npy"),
        (cut_field, "pos.npy"),
        (empty_field, "pos.npy"),
        (other_shape, r"pos.npy holds float32 \(4, 3\), not <f4 \(5, 3\)"),
    ],
)
def test_a_damaged_store_is_refused_when_opened(make_graph, tmp_path, damage, message):
    write_store(tmp_path / "s", [make_graph(5)])
    damage(tmp_path / "s")
    with pytest.raises(DatasetError, match=message):
        GraphStore(tmp_path / "s")


def test_verify_finds_one_changed_byte(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    store.verify()
    with open(store.path / "pos.npy", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(DatasetError, match="pos.npy"):
        GraphStore(store.path).verify()


def test_a_field_that_has_changed_its_meaning_is_refused(make_graph, tmp_path):
    store = write_store(tmp_path / "s", [make_graph(5)])
    meta = json.loads((store.path / "store.json").read_text())
    meta["specs"]["pos"]["unit"] = "nm"
    (store.path / "store.json").write_text(json.dumps(meta))
    with pytest.raises(DatasetError, match="'pos'.*'nm'.*'Å'"):
        GraphStore(store.path)


def test_a_plugins_index_field_is_shifted_like_collate_does(make_graph, tmp_path):
    register_field(FieldSpec("store_test_partner", "node", "index", "int64", shape=(), doc="another node"))
    graphs = [make_graph(n) for n in (4, 6)]
    for g in graphs:
        g.store_test_partner = torch.arange(g.num_nodes).flip(0)
    store = write_store(tmp_path / "s", graphs)
    expected = torch.tensor([3, 2, 1, 0, 9, 8, 7, 6, 5, 4])
    assert torch.equal(store.collate([0, 1]).store_test_partner, expected)
    assert_same(store.collate([1, 0]), collate([graphs[1], graphs[0]]))


def test_a_field_without_its_plugin_is_read_all_the_same(make_graph, tmp_path):
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
