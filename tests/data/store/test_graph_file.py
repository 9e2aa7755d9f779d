"""Graph files return the graph that was written; other and damaged files raise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from protgraph.data.store.graph_file import read_graph_file, write_graph_file
from protgraph.data.store.store_writer import write_store
from protgraph.errors import DatasetError, FieldError
from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure


@pytest.fixture(scope="module", params=["residue", "atom"])
def graph(request, structures_dir):
    residues = clean(load_structure(structures_dir / "10sb.bcif"), ligands=True)
    return build_graph(
        residues, [component("radius", radius=6.0), "edge_distance", "dihedral"], node_type=request.param
    )


def test_a_graph_is_read_with_all_its_fields_and_attributes(graph, tmp_path):
    write_graph_file(tmp_path / "one", graph, info={"residues": 3})
    back, residues, info = read_graph_file(tmp_path / "one")
    assert set(back.keys()) == set(graph.keys())
    for key, value in graph.items():
        assert type(back[key]) is type(value), key
        if isinstance(value, torch.Tensor):
            assert back[key].dtype == value.dtype
            assert torch.equal(back[key].nan_to_num(7), value.nan_to_num(7))
        elif isinstance(value, np.ndarray):
            assert back[key].dtype == value.dtype
            assert np.array_equal(back[key], value)
        else:
            assert back[key] == value
    assert back.validate()
    assert (residues, info) == (None, {"residues": 3})
    assert [p.name for p in tmp_path.iterdir()] == ["one"]


def test_a_store_of_the_read_graph_equals_that_of_the_original(graph, tmp_path):
    write_graph_file(tmp_path / "one", graph, info={})
    own, read = (
        write_store(tmp_path / name, [g]) for name, g in (("a", graph), ("b", read_graph_file(tmp_path / "one").graph))
    )
    for file in ("store.json", "shards/graphs.safetensors"):
        assert (own.path / file).read_bytes() == (read.path / file).read_bytes(), file


def test_info_that_is_not_plain_data_raises_and_leaves_no_file(graph, tmp_path):
    with pytest.raises(FieldError, match="10sb"):
        write_graph_file(tmp_path / "one", graph, info={"key": object()})
    assert list(tmp_path.iterdir()) == []


def test_residues_are_read_with_the_graph(graph, structures_dir, tmp_path):
    expected = clean(load_structure(structures_dir / "10sb.bcif"), ligands=True)
    write_graph_file(tmp_path / "one", graph, residues=expected, info={})
    back = read_graph_file(tmp_path / "one").residues
    assert (back.name, back.report, back.ids, back.ligands.ids) == (
        expected.name,
        expected.report,
        expected.ids,
        expected.ligands.ids,
    )
    for name in ("res_name", "atom_name", "atom_element", "pos", "backbone", "b_factor", "occupancy"):
        np.testing.assert_array_equal(getattr(back, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("cut", [0, 40, -8])
def test_a_truncated_or_missing_file_raises(graph, tmp_path, cut):
    write_graph_file(tmp_path / "one", graph, info={})
    (tmp_path / "cut").write_bytes((tmp_path / "one").read_bytes()[:cut])
    with pytest.raises(DatasetError, match="cut"):
        read_graph_file(tmp_path / "cut")
    with pytest.raises(DatasetError, match="absent"):
        read_graph_file(tmp_path / "absent")


def test_a_safetensors_file_of_other_tensors_raises(tmp_path):
    from safetensors.numpy import save_file

    save_file({"w": np.zeros(3)}, tmp_path / "w")
    with pytest.raises(DatasetError, match=r"\bw is"):
        read_graph_file(tmp_path / "w")
