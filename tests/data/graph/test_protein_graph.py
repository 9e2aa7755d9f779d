"""Protein graphs: collation and validation by the field table."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import FieldError, UnknownNameError
from protgraph.ops import Edges, Proteins


def ring(n: int, k: int, name: str, seed: int = 0) -> ProteinGraph:
    """Connect each node to the k nodes before it on a ring."""
    g = torch.Generator().manual_seed(seed)
    source = (torch.arange(n).unsqueeze(1) - torch.arange(1, k + 1)) % n
    graph = ProteinGraph(
        pos=torch.randn(n, 3, generator=g),
        aatype=torch.randint(0, 21, (n,), generator=g),
        res_id=torch.arange(5, n + 5),
        edge_index=torch.stack([source.flatten(), torch.arange(n).repeat_interleave(k)]),
        y=torch.randint(0, 3, (n,), generator=g),
    )
    graph.name, graph.degree, graph.y_level = name, k, "node"
    return graph


@pytest.fixture
def graphs():
    return [ring(20, 3, "a", 1), ring(7, 3, "b", 2), ring(3, 2, "c", 3)]


def test_names_and_number_of_nodes_equal_those_of_pyg(graphs):
    for graph in (
        *graphs,
        collate(graphs),
        ProteinGraph(pos=torch.zeros(2, 3), num_nodes=5),
        ProteinGraph(num_nodes=4),
    ):
        plain = Data(**dict(graph.items()))
        assert graph.num_nodes == plain.num_nodes
        assert [key in graph for key in ("pos", "degree", "absent")] == [
            key in plain for key in ("pos", "degree", "absent")
        ]
    graphs[0].num_nodes = 20
    assert graphs[0].num_nodes == 20


def test_collate_equals_pyg_batching(graphs):
    batch, pyg = collate(graphs), Batch.from_data_list(graphs)
    for key in ("pos", "aatype", "res_id", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(batch[key], pyg[key]), key


def test_residue_numbers_do_not_shift_on_batching(graphs):
    batch = collate(graphs)
    assert torch.equal(batch.res_id, torch.cat([g.res_id for g in graphs]))


def test_get_example_returns_the_graphs_of_a_batch(graphs):
    batch = collate(graphs)
    for i, g in enumerate(graphs):
        example = batch.get_example(i)
        assert example.name == g.name
        for key in ("pos", "aatype", "edge_index", "y"):
            assert torch.equal(example[key], g[key]), key


def test_level_of_y_does_not_depend_on_its_length():
    """PyG treats every tensor of N rows as a node attribute; here the declared level decides."""
    graph = ring(21, 2, "a")
    graph.y, graph.y_level = torch.zeros(21), "graph"
    assert not graph.is_node_attr("y")
    graph.y_level = "node"
    assert graph.is_node_attr("y")


def test_batch_has_a_degree_only_if_all_graphs_have_the_same(graphs):
    assert collate(graphs[:2]).degree == 3
    assert "degree" not in collate(graphs)
    assert Edges.from_graph(collate(graphs)).num_edges == 20 * 3 + 7 * 3 + 3 * 2


def test_sizes_are_host_integers(graphs):
    proteins = Proteins.from_graph(collate(graphs))
    assert proteins.sizes == (20, 7, 3) and len(proteins) == 3


def test_single_graph_is_one_protein(graphs):
    assert Proteins.from_graph(graphs[0]).sizes == (20,)


def test_unregistered_tensor_raises(graphs):
    graphs[0].hydropathyy = torch.zeros(20)
    with pytest.raises(UnknownNameError, match="hydropathyy"):
        graphs[0].validate()
    assert not graphs[0].validate(raise_on_error=False)


@pytest.mark.parametrize(
    ("change", "data"),
    [
        (lambda g: g.update({"aatype": g.aatype[:-1]}), "rows"),
        (lambda g: g.update({"aatype": g.aatype.float()}), "float32"),
        (lambda g: g.update({"pos": g.pos * float("nan")}), "row 0"),
        (lambda g: g.update({"pos": g.pos[:, :2]}), r"\(2,\)"),
        (lambda g: g.update({"edge_index": g.edge_index.flip(1)}), "sort_by_row"),
        (lambda g: g.update({"edge_index": g.edge_index + 1}), "node 20"),
        (lambda g: g.update({"degree": 2}), "degree"),
    ],
)
def test_invalid_fields_raise_with_the_field_or_row(change, data):
    graph = ring(20, 3, "1abc")
    change(graph)
    with pytest.raises(FieldError, match=data):
        graph.validate()


def test_open_width_matches_any_width_only():
    register_field(FieldSpec("open_width", "node", "point", shape=(None, 3), doc="points"))
    graph = ring(20, 3, "1abc")
    for width in (2, 5):
        graph.open_width = torch.zeros(20, width, 3)
        assert graph.validate()
    graph.open_width = torch.zeros(20, 2, 4)
    with pytest.raises(FieldError, match=r"\(2, 4\)"):
        graph.validate()


def test_validate_accepts_a_batch(graphs):
    assert collate(graphs).validate()


def test_collating_graphs_with_different_fields_raises(graphs):
    del graphs[1].res_id
    with pytest.raises(FieldError, match="res_id"):
        collate(graphs)


def test_collating_an_empty_list_raises():
    with pytest.raises(FieldError, match="empty"):
        collate([])


def test_pad_and_unpad_are_inverse(graphs):
    batch = collate(graphs)
    proteins = Proteins.from_graph(batch)
    padded, mask = proteins.pad(batch.pos)
    assert padded.shape == (3, 20, 3) and mask.sum(1).tolist() == [20, 7, 3]
    assert torch.equal(proteins.unpad(padded), batch.pos)
    assert padded[~mask].abs().sum() == 0
