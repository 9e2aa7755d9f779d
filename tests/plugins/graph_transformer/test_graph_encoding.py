"""Graph encodings: random walks against networkx, and graphs with a known Laplacian."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from protgraph_plugins.graph_transformer import LaplacianEncoding, RandomWalkEncoding

from protgraph.ops import Edges, Proteins


def inputs(*graphs: nx.Graph | nx.DiGraph) -> dict:
    """Return graphs as one batch, with both directions of each edge unless directed."""
    sizes = tuple(len(g) for g in graphs)
    starts = np.cumsum([0, *sizes])
    pairs = [(a + s, b + s) for g, s in zip(graphs, starts, strict=False) for a, b in nx.DiGraph(g).edges]
    index = torch.tensor(sorted(pairs, key=lambda e: (e[1], e[0])) or np.zeros((0, 2), int)).T
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return {"edges": Edges(index, int(starts[-1])), "proteins": Proteins(batch, sizes)}


def test_returns_equal_powers_of_the_transition_matrix(float64):
    graph = nx.gnp_random_graph(15, 0.25, seed=2, directed=True)
    features = RandomWalkEncoding(steps=7)(inputs(graph))["random_walk"].numpy()
    adjacent = nx.to_numpy_array(graph).T  # row i: sources of the edges to i
    walk = adjacent / np.maximum(adjacent.sum(1, keepdims=True), 1)
    for k in range(2, 9):
        assert np.allclose(features[:, k - 2], np.diag(np.linalg.matrix_power(walk, k)))


def test_returns_on_a_ring_are_binomial(float64):
    features = RandomWalkEncoding(steps=5)(inputs(nx.cycle_graph(20)))["random_walk"]
    assert features[0].tolist() == pytest.approx([2 / 4, 0, 6 / 16, 0, 20 / 64])


def test_frequencies_do_not_depend_on_the_basis_of_the_solver(float64):
    ring = LaplacianEncoding(size=6)(inputs(nx.cycle_graph(12)))["laplacian"]
    assert torch.allclose(ring, torch.tensor([2.0] * 6).expand(12, 6), atol=1e-8)  # pairs of waves, spread evenly
    whole = LaplacianEncoding(size=3)(inputs(nx.complete_graph(5)))["laplacian"]
    assert torch.allclose(whole, torch.full((5, 3), 4.0))  # one eigenvalue, 4 times


def test_single_frequencies_are_squared_eigenvectors(float64):
    graph = nx.path_graph(9)
    features = LaplacianEncoding(size=4)(inputs(graph))["laplacian"].numpy()
    _, vector = np.linalg.eigh(nx.normalized_laplacian_matrix(graph).toarray())
    assert np.allclose(features, 9 * vector[:, 1:5] ** 2, atol=1e-6)


def test_encodings_of_degenerate_eigenvalues_do_not_depend_on_node_order(float64):
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
    before = LaplacianEncoding()(inputs(grid))["laplacian"]
    order = np.random.default_rng(0).permutation(16)
    after = LaplacianEncoding()(inputs(nx.relabel_nodes(grid, dict(enumerate(order)))))["laplacian"]
    assert torch.allclose(after[order], before, atol=1e-8)


def test_batch_equals_singles_also_for_graphs_without_edges(float64):
    graphs = [nx.path_graph(9), nx.empty_graph(1), nx.cycle_graph(4), nx.empty_graph(3)]
    for featurizer in (RandomWalkEncoding(), LaplacianEncoding()):
        (name,) = featurizer.writes
        together = featurizer(inputs(*graphs))[name]
        assert torch.isfinite(together).all()
        assert torch.equal(together, torch.cat([featurizer(inputs(g))[name] for g in graphs]))
    assert not RandomWalkEncoding()(inputs(nx.empty_graph(3)))["random_walk"].any()
    assert LaplacianEncoding()(inputs(nx.path_graph(3)))["laplacian"].shape == (3, 8)
