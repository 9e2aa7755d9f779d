"""Graphs of networkx, PyG and pandas have the same fields; the way back from PyG is exact."""

from __future__ import annotations

import builtins

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import from_networkx

from protgraph.data.graph.convert import from_pyg, node_names, to_frames, to_networkx, to_pyg
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import FieldError, MissingExtraError
from protgraph.featurize.plan import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure

EDGES = (component("knn", k=12), component("sequence", k=2), "edge_distance", "edge_rbf")
FEATURES = ("dihedral", "orientation", "b_factor", *EDGES)


@pytest.fixture(scope="module")
def graphs(structures_dir) -> list[ProteinGraph]:
    """Return graphs with several kinds of edges, constant degree, no edges, one residue, and atom nodes."""
    residues = [clean(load_structure(structures_dir / f"{name}.bcif")) for name in ("1crn", "1jk9")]
    single = residues[0].select(np.arange(len(residues[0])) == 3)
    graphs = [build_graph(residues[0], FEATURES), build_graph(residues[1], ["dihedral", "knn", "edge_direction"])]
    graphs += [build_graph(residues[0], ["dihedral"]), build_graph(single, ["knn", "edge_distance"])]
    graphs += [build_graph(residues[0], ["covalent_bond", "edge_distance"], node_type="atom")]
    graphs[0].y, graphs[0].y_level = torch.arange(46), "node"
    graphs[1].y, graphs[1].y_level = torch.tensor([[0.25, -1.0]]), "graph"
    return graphs


def assert_equal(a: ProteinGraph, b: ProteinGraph) -> None:
    assert type(a) is type(b) and set(a.keys()) == set(b.keys())
    for key, value in a.items():
        other = b[key]
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype and value.shape == other.shape, key
            assert torch.equal(value.nan_to_num(1e9), other.nan_to_num(1e9)), key
        elif isinstance(value, np.ndarray):
            assert value.tolist() == other.tolist(), key
        else:
            assert value == other, key


def test_round_trip_through_pyg_is_exact(graphs):
    for graph in graphs:
        assert_equal(from_pyg(to_pyg(graph)), graph)
        edge_attr = [key for key in ("edge_dist", "edge_rbf") if key in graph]
        assert_equal(from_pyg(to_pyg(graph, x=["pos", "backbone"], edge_attr=edge_attr)), graph)


def test_node_names_of_residues(shared_data):
    residues = clean(load_structure(shared_data / "formats" / "1igy.cif"))
    names = node_names(build_graph(residues, []))
    expected = [f"{c}:{r}:{n}{i}" for c, r, n, i in zip(residues.chain, residues.res_name, residues.res_id,
                                                        residues.ins_code, strict=True)]  # fmt: skip
    assert names == expected and "B:SER:82A" in names and len(set(names)) == len(names)


def test_node_names_of_atoms(graphs):
    assert node_names(graphs[-1])[:2] == ["A:THR:1:N", "A:THR:1:CA"]


def test_networkx_graph_has_edges_attributes_and_name(graphs):
    g = to_networkx(graphs[0])
    j, i = graphs[0].edge_index[:, 7].tolist()
    names = node_names(graphs[0])
    assert g.edges[names[j], names[i]]["edge_dist"][0] == pytest.approx(float(graphs[0].edge_dist[7]))
    assert g.nodes["A:THR:1"]["aatype"] == 16 and g.graph["name"] == "1crn"
    assert nx.number_weakly_connected_components(g) == 1


def test_the_way_back_from_networkx_is_that_of_pyg(graphs):
    """PyG's from_networkx, then from_pyg: the fields are equal, edges of a node may be in another order."""
    g = to_networkx(graphs[0])
    data = from_networkx(g)
    back = from_pyg(data)
    for key, value in graphs[0].items():
        if isinstance(value, torch.Tensor) and key != "y" and graphs[0].level(key) == "node":
            assert torch.equal(back[key].nan_to_num(1e9), value.nan_to_num(1e9)), key
    order, expected = (torch.from_numpy(np.lexsort(one.edge_index.numpy())) for one in (back, graphs[0]))
    assert torch.equal(back.edge_index[:, order], graphs[0].edge_index[:, expected])
    for key in ("edge_dist", "edge_rbf", "edge_kind"):
        assert torch.equal(back[key][order], graphs[0][key][expected]), key


def test_own_graphs_keep_features_and_labels():
    n, index = 5, torch.tensor([[0, 1, 2, 3, 4, 0], [4, 3, 0, 1, 1, 2]])
    data = Data(x=torch.randn(n, 4), edge_index=index, edge_attr=torch.arange(6.0)[:, None], y=torch.tensor(1.5))
    graph = from_pyg(data)
    assert torch.equal(graph.x, data.x) and graph.y.tolist() == [1.5]
    assert graph.edge_index.tolist() == [[2, 3, 4, 0, 1, 0], [0, 1, 1, 2, 3, 4]]
    assert graph.edge_attr.flatten().tolist() == [2, 3, 4, 5, 1, 0]
    assert data.edge_attr.flatten().tolist() == [0, 1, 2, 3, 4, 5]  # the input is unchanged
    assert graph.is_node_attr("x") and graph.is_edge_attr("edge_attr")


def test_features_that_were_changed_after_to_pyg_are_kept(graphs):
    data = to_pyg(graphs[0], x=["dihedral"], edge_attr=["edge_dist"])
    data.x = data.x + 1
    back = from_pyg(data)
    assert torch.equal(back.x, graphs[0].dihedral + 1) and "edge_attr" not in back and "x_fields" not in back


def test_labels_of_edges_are_sorted_with_the_edges():
    index = torch.tensor([[0, 1, 2, 0], [2, 0, 1, 1]])
    graph = from_pyg(Data(x=torch.zeros(3, 1), edge_index=index, y=torch.arange(4)))
    assert graph.y.tolist() == [1, 2, 3, 0]
    ring = Data(x=torch.zeros(3, 1), edge_index=index[:, :3], y=torch.arange(3))
    with pytest.raises(FieldError, match="y_level"):
        from_pyg(ring)
    ring.y_level = "node"
    assert from_pyg(ring).y.tolist() == [0, 1, 2]
    ring.y_level = "edge"
    assert from_pyg(ring).y.tolist() == [1, 2, 0]


def test_what_cannot_be_converted_raises_with_all_names(graphs):
    data = Data(pos=graphs[0].pos, color=graphs[0].pos, train_mask=torch.ones(46, dtype=torch.bool))
    with pytest.raises(FieldError, match="'color', 'train_mask'"):
        from_pyg(data)
    with pytest.raises(FieldError, match="to_data_list"):
        from_pyg(Batch.from_data_list([to_pyg(graphs[2]), to_pyg(graphs[2])]))
    with pytest.raises(FieldError, match="'x' of its own"):
        to_pyg(from_pyg(Data(x=graphs[0].pos, pos=graphs[0].pos)), x=["pos"])
    register_field(FieldSpec("convert_test_partner", "node", "index", "int64", shape=(), doc="another node"))
    partner = ProteinGraph(pos=torch.zeros(2, 3), convert_test_partner=torch.tensor([1, 0]))
    with pytest.raises(FieldError, match="convert_test_partner"):
        to_pyg(partner)


def test_graphs_without_edges_have_empty_edge_features(graphs):
    data = to_pyg(graphs[3], edge_attr=["edge_dist", "edge_dist"])
    assert graphs[3].num_edges == 0 and data.edge_attr.shape == (0, 2)


def test_pyg_layer_runs_on_concatenated_fields(graphs):
    data = to_pyg(graphs[0], x=["dihedral", "dihedral_mask", "pos"], edge_attr=["edge_dist", "edge_kind"])
    assert type(data) is Data and data.x.shape == (46, 12) and data.edge_attr.shape[1] == 3
    assert GCNConv(12, 4)(data.x, data.edge_index).shape == (46, 4)
    with pytest.raises(FieldError, match="'dihedral'"):
        to_pyg(graphs[0], edge_attr=["dihedral"])


def test_tables_have_one_row_per_node_and_edge(graphs):
    nodes, edges = to_frames(graphs[0])
    assert nodes.loc["A:THR:1", "pos[0]"] == pytest.approx(float(graphs[0].pos[0, 0]))
    assert "backbone[3,2]" in nodes and list(edges.columns[:2]) == ["source", "target"]
    assert len(edges) == graphs[0].num_edges and nodes.attrs["name"] == "1crn"


def test_missing_pandas_raises_with_the_extra(graphs, monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError("No module named 'pandas'")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"protgraph-pyg\[pandas\]"):
        to_frames(graphs[0])
