"""Round trips through networkx, PyG and pandas are exact."""

from __future__ import annotations

import builtins

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from protgraph.data.graph.convert import (
    from_frames,
    from_networkx,
    from_pyg,
    node_names,
    to_frames,
    to_networkx,
    to_pyg,
)
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import FieldError, MissingExtraError
from protgraph.featurize.plan import build_graph
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure

EDGES = (component("knn", k=12), component("sequence", k=2), "edge_distance", "edge_rbf")
FEATURES = ("dihedral", "orientation", "b_factor", *EDGES)
CONVERSIONS = {
    "networkx": lambda g: from_networkx(to_networkx(g)),
    "pyg": lambda g: from_pyg(to_pyg(g, x=["pos"])),
    "pandas": lambda g: from_frames(*to_frames(g)),
}


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


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_round_trip_is_exact(graphs, conversion):
    for graph in graphs:
        assert_equal(CONVERSIONS[conversion](graph), graph)


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


def test_modified_networkx_graph_is_converted(graphs):
    g = to_networkx(graphs[0])
    g.remove_node("A:THR:1")
    graph = from_networkx(nx.DiGraph(g))
    assert graph.num_nodes == 45 and graph.residue_ids[0] == "A:2" and graph.validate()


def test_unknown_or_incomplete_attributes_raise(graphs):
    g = to_networkx(graphs[0])
    g.nodes["A:THR:1"]["color"] = 1.0
    with pytest.raises(FieldError, match="45 of 46 .*'color'"):
        from_networkx(g)
    nx.set_node_attributes(g, 1.0, "color")
    with pytest.raises(FieldError, match="'color'"):
        from_networkx(g)
    with pytest.raises(FieldError, match="'color'"):
        from_pyg(Data(pos=graphs[0].pos, color=graphs[0].pos))
    nodes, edges = to_frames(graphs[0])
    with pytest.raises(FieldError, match="1crn"):
        from_frames(nodes.iloc[1:], edges)


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
