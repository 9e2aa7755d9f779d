"""Edge features: formulas, and gradients for coincident nodes."""

from __future__ import annotations

import math

import pytest
import torch

from protgraph.featurize.edge_features import EdgeDirection, EdgeDistance, EdgeOffset, EdgeRbf, EdgeVector
from protgraph.ops import Edges


@pytest.fixture
def f(float64):
    torch.manual_seed(0)
    index = torch.tensor([[1, 2, 0, 3, 0], [0, 0, 1, 2, 3]])
    return {"pos": torch.randn(4, 3) * 5 + 100, "edges": Edges(index, 4)}


def test_vectors_run_from_target_to_source(f):
    out = EdgeVector()(f)["edge_vec"]
    for row, (j, i) in zip(out, f["edges"].index.T.tolist(), strict=True):
        assert torch.equal(row, f["pos"][j] - f["pos"][i])


def test_distance_times_direction_is_the_vector(f):
    distance, direction = EdgeDistance()(f)["edge_dist"], EdgeDirection()(f)["edge_direction"]
    vector = EdgeVector()(f)["edge_vec"]
    assert torch.allclose(distance * direction, vector, rtol=1e-14)
    assert torch.allclose(distance[:, 0], torch.linalg.vector_norm(vector, dim=1), rtol=1e-14)
    assert distance.shape == (5, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("degree", [None, 7])
def test_distances_and_radial_basis_are_the_same_with_and_without_gradients(dtype, degree):
    """All equal norms of vectors, bit for bit."""
    torch.manual_seed(1)
    pos = torch.randn(50, 3, dtype=dtype) * 12
    index = torch.stack([torch.randint(50, (350,)), torch.arange(50).repeat_interleave(7)])
    results = []
    for given in (pos, pos.clone().requires_grad_()):
        distance = EdgeDistance()({"pos": given, "edges": Edges(index, 50, degree=degree)})["edge_dist"]
        results.append((distance, EdgeRbf()({"edge_dist": distance})["edge_rbf"]))
    (plain, basis), (with_gradient, its_basis) = results
    assert torch.equal(plain, (pos[index[0]] - pos[index[1]]).square().sum(1, keepdim=True).sqrt())
    assert torch.equal(plain, with_gradient)
    assert torch.equal(basis, its_basis)


@pytest.mark.parametrize("degree", [None, 0])
def test_no_edges_have_no_features(degree):
    edges = Edges(torch.zeros(2, 0, dtype=torch.long), 1, degree=degree)
    distance = EdgeDistance()({"pos": torch.zeros(1, 3), "edges": edges})["edge_dist"]
    assert distance.shape == (0, 1)
    assert EdgeRbf()({"edge_dist": distance})["edge_rbf"].shape == (0, 16)


def test_coincident_nodes_give_zero_and_finite_derivatives(f):
    pos = torch.tensor([[1.0, 2, 3], [1, 2, 3], [4, 6, 3]]).requires_grad_()
    given = {"pos": pos, "edges": Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), 3)}
    distance, direction = EdgeDistance()(given)["edge_dist"], EdgeDirection()(given)["edge_direction"]
    assert distance.flatten().tolist() == [0, 5, 0]
    assert direction.tolist() == [[0, 0, 0], [0.6, 0.8, 0], [0, 0, 0]]
    energy = (distance + distance**2).sum() + (direction * torch.arange(3.0)).sum()
    (gradient,) = torch.autograd.grad(energy, pos, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), pos)
    assert torch.isfinite(gradient).all()
    assert torch.isfinite(second).all()
    assert gradient[1].tolist() == [0, 0, 0]  # the only edge of node 1 has length 0


@pytest.mark.parametrize(("bins", "cutoff"), [(16, 20.0), (1, 5.0), (50, 12)])
def test_radial_basis_equals_the_formula(float64, bins, cutoff):
    distances = [0.0, 3.8, 20.0, 55.5]
    featurizer = EdgeRbf(bins=bins, cutoff=cutoff)
    assert featurizer.out["edge_rbf"].irreps == f"{bins}x0e"
    basis = featurizer({"edge_dist": torch.tensor(distances)[:, None]})["edge_rbf"]
    assert basis.shape == (4, bins)
    for row, d in zip(basis.tolist(), distances, strict=True):
        for b, value in enumerate(row):
            center = cutoff * b / (bins - 1) if bins > 1 else 0.0
            assert value == pytest.approx(math.exp(-(((d - center) / (cutoff / bins)) ** 2)), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_radial_basis_has_no_denormal_numbers(dtype):
    distance = torch.linspace(0.0, 200.0, 4001, dtype=dtype)[:, None].requires_grad_()
    basis = EdgeRbf()({"edge_dist": distance})["edge_rbf"]
    tiny, center = torch.finfo(dtype).tiny, torch.linspace(0.0, 20.0, 16, dtype=torch.float64)
    exact = torch.exp(-((distance.double() - center) * 0.8).square())
    assert ((basis == 0) == (exact < 4 * tiny)).all()
    assert (basis - exact).abs().max() < 1e-5  # rounding of float32
    (gradient,) = torch.autograd.grad(basis.sum(), distance)
    assert torch.isfinite(gradient).all()


def test_offset_columns_count_along_the_sequence_not_the_nodes():
    seq_pos, chain = torch.tensor([0, 1, 40, 3]), torch.tensor([0, 0, 0, 1])  # 38 unresolved before node 2
    index = torch.tensor([[1, 2, 3, 0, 0, 1], [0, 0, 0, 1, 2, 3]])
    given = {"seq_pos": seq_pos, "chain": chain, "edges": Edges(index, 4)}
    offset = EdgeOffset()(given)["edge_offset"]
    assert offset.shape == (6, 66)
    assert offset.sum(1).tolist() == [1] * 6
    assert offset.argmax(1).tolist() == [32 + 1, 32 + 32, 65, 32 - 1, 0, 65]
    narrow = EdgeOffset(clip=1)
    assert narrow.out["edge_offset"].irreps == "4x0e"
    assert narrow(given)["edge_offset"].argmax(1).tolist() == [2, 2, 3, 0, 0, 3]


def test_no_edges_give_empty_features():
    given = {
        "pos": torch.zeros(1, 3),
        "seq_pos": torch.zeros(1, dtype=torch.long),
        "chain": torch.zeros(1, dtype=torch.long),
        "edges": Edges(torch.zeros(2, 0, dtype=torch.long), 1, degree=0),
    }
    for featurizer in (EdgeVector, EdgeDistance, EdgeDirection, EdgeOffset):
        (name,) = featurizer.writes
        out = featurizer()(given)[name]
        assert out.shape == (0, featurizer().out[name].dim)
    assert EdgeRbf()({"edge_dist": torch.zeros(0, 1)})["edge_rbf"].shape == (0, 16)
