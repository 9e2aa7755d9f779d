"""Spherical harmonics of edges: closed forms to degree 2, rotation, mean over neighbors."""

from __future__ import annotations

import pytest
import torch
from e3nn.o3 import Irreps, rand_matrix

from protgraph.featurize.harmonics import EdgeHarmonics, NeighborHarmonics
from protgraph.ops import Edges


@pytest.fixture
def f(float64):
    torch.manual_seed(0)
    index = torch.tensor([[1, 2, 0, 3, 0], [0, 0, 1, 2, 3]])
    return {"pos": torch.randn(4, 3) * 5 + 100, "edges": Edges(index, 4)}


def test_low_degrees_in_closed_form(f):
    features = EdgeHarmonics()(f)["edge_harmonics"]
    r = f["edges"].source(f["pos"]) - f["edges"].target(f["pos"])
    r = r / r.norm(dim=1, keepdim=True)
    x, y, z = r.T
    assert torch.allclose(features[:, 0], torch.ones(5))
    assert torch.allclose(features[:, 1:4], 3**0.5 * r)
    second = [3**0.5 * x * z, 3**0.5 * x * y, y * y - (x * x + z * z) / 2, 3**0.5 * y * z, 3**0.5 / 2 * (z * z - x * x)]
    assert torch.allclose(features[:, 4:], 5**0.5 * torch.stack(second, 1))


@pytest.mark.parametrize("featurizer", [EdgeHarmonics, NeighborHarmonics])
def test_harmonics_are_equivariant(f, featurizer):
    (name,) = featurizer.writes
    q, features = rand_matrix(), featurizer(degree=4)
    turn = Irreps(features.out[name].irreps).D_from_matrix(-q)
    moved = features({**f, "pos": f["pos"] @ -q.T + 50})[name]
    assert torch.allclose(moved, features(f)[name] @ turn.T, atol=1e-10)


def test_neighbors_are_averaged(f):
    edges = EdgeHarmonics(degree=3)(f)["edge_harmonics"][:, 1:]
    features = NeighborHarmonics()(f)["neighbor_harmonics"]
    assert torch.allclose(features[0], edges[:2].mean(0)) and torch.allclose(features[1:], edges[2:])


def test_isotropic_neighbors_cancel(float64):
    pos = torch.cat([torch.zeros(1, 3), torch.eye(3), -torch.eye(3)])
    edges = Edges(torch.stack([torch.arange(1, 7), torch.zeros(6, dtype=torch.long)]), 7)
    features = NeighborHarmonics()({"pos": pos, "edges": edges})["neighbor_harmonics"]
    assert features.abs().max() < 1e-12  # an octahedron has no moment below degree 4


def test_coincident_nodes_have_degree_0_only(f):
    f["pos"][1] = f["pos"][0]
    features = EdgeHarmonics()(f)["edge_harmonics"]
    assert features[0].tolist() == [1] + [0] * 8
