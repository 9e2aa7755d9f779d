"""Action of O(3) on fields."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from e3nn import o3

from protgraph.errors import FieldError
from protgraph.testing.symmetry import (
    ComparisonError,
    act,
    random_reflections,
    random_rotations,
    relative_error,
    representation,
)

F64 = torch.float64


@pytest.fixture
def conventions(shared_reference):
    return np.load(shared_reference / "tfn_dojo" / "e3nn_conventions.npz")


@pytest.mark.parametrize("l", range(5))
def test_wigner_matrices_equal_those_of_e3nn(conventions, l):  # noqa: E741
    actual = representation(torch.from_numpy(conventions["D/Q"]), f"1x{l}{'e' if l % 2 == 0 else 'o'}")
    assert np.abs(actual.numpy() - conventions[f"D/{l}"]).max() < 1e-13


@pytest.mark.parametrize("l", range(5))
def test_spherical_harmonics_rotate_by_the_wigner_matrix(conventions, l):  # noqa: E741
    v = torch.from_numpy(conventions["sh/vec"])
    irreps = f"1x{l}{'e' if l % 2 == 0 else 'o'}"
    y = torch.from_numpy(conventions[f"sh/component/{l}"])
    for q in torch.cat([random_rotations(4), random_reflections(4)]):
        moved = o3.spherical_harmonics(irreps, v @ q.T, normalize=True, normalization="component")
        assert (moved - act(q, y, irreps)).abs().max() < 1e-12


def test_the_default_dtype_does_not_affect_the_result():
    q = random_rotations(1, seed=5)[0]
    single = representation(q, "2x3o+1x2e")
    torch.set_default_dtype(F64)
    try:
        double = representation(q, "2x3o+1x2e")
    finally:
        torch.set_default_dtype(torch.float32)
    assert single.dtype == F64
    assert torch.equal(single, double)


def test_representation_is_a_homomorphism_of_o3():
    irreps = "2x0e+1x0o+1x1o+2x1e+1x2e+1x2o+1x3o"
    a, b = random_rotations(1, seed=1)[0], random_reflections(1, seed=2)[0]
    for g, h in [(a, b), (b, a), (b, b)]:
        product = representation(g, irreps) @ representation(h, irreps)
        assert (representation(g @ h, irreps) - product).abs().max() < 1e-13
    eye = torch.eye(o3.Irreps(irreps).dim, dtype=F64)
    assert (representation(b, irreps) @ representation(b, irreps).T - eye).abs().max() < 1e-13


def test_inversion_flips_odd_irreps():
    inversion = -torch.eye(3, dtype=F64)
    value = torch.arange(1.0, 9.0, dtype=F64)[None]
    actual = act(inversion, value, "1x0e+1x0o+1x1o+1x1e")
    assert actual.tolist() == [[1.0, -2.0, -3.0, -4.0, -5.0, 6.0, 7.0, 8.0]]


def test_points_rotate_and_translate_in_any_trailing_shape():
    q, t = random_rotations(1)[0], torch.tensor([100.0, -3.0, 0.5], dtype=F64)
    backbone = torch.randn(5, 4, 3, dtype=F64)
    actual = act(q, backbone, "point", shape=(4, 3), shift=t)
    for n in range(5):
        for a in range(4):
            assert torch.allclose(actual[n, a], q @ backbone[n, a] + t, atol=1e-13, rtol=0)


def test_vectors_rotate_but_do_not_translate_in_any_trailing_shape():
    q, t = random_reflections(1)[0], torch.ones(3, dtype=F64)
    v = torch.randn(5, 2, 3, dtype=F64)
    assert torch.allclose(act(q, v, "2x1o", shape=(2, 3), shift=t), v @ q.T, atol=1e-13, rtol=0)
    assert torch.allclose(act(q, v.flatten(1), "2x1o", shift=t).view_as(v), v @ q.T, atol=1e-13, rtol=0)


@pytest.mark.parametrize("irreps", ["index", "1x0e", "point"])
def test_integers_and_masks_are_unchanged(irreps):
    q = random_rotations(1)[0]
    for value in (torch.arange(6).view(2, 3), torch.ones(2, 3, dtype=torch.bool)):
        assert act(q, value, irreps) is value


def test_values_that_do_not_fit_the_irreps_raise():
    with pytest.raises(FieldError, match="2x1o"):
        act(random_rotations(1)[0], torch.ones(4, 5, dtype=F64), "2x1o")


def test_rotations_are_orthogonal_with_determinant_one():
    r = random_rotations(64)
    eye = torch.eye(3, dtype=torch.float64)
    assert r.dtype == torch.float64
    assert (r @ r.mT - eye).abs().max() < 1e-14
    assert (torch.linalg.det(r) - 1).abs().max() < 1e-14


def test_reflections_have_determinant_minus_one():
    assert (torch.linalg.det(random_reflections(16)) + 1).abs().max() < 1e-14


def test_rotations_follow_the_haar_measure():
    # Moments over SO(3): E[R_ij] = 0, E[R_ij R_kl] = δ_ik δ_jl / 3, E[tr(R)^2] = 1, E[tr(R)^4] = 3.
    r = random_rotations(200_000, seed=3)
    second = torch.einsum("nij,nkl->ijkl", r, r) / len(r)
    eye = torch.eye(3, dtype=torch.float64)
    trace = r.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert r.mean(0).abs().max() < 0.006
    assert (second - torch.einsum("ik,jl->ijkl", eye, eye) / 3).abs().max() < 0.006
    assert abs(float((trace**2).mean()) - 1) < 0.02
    assert abs(float((trace**4).mean()) - 3) < 0.1


def test_the_seed_is_reproducible_and_the_global_generator_unchanged():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    first = random_rotations(4, seed=7)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first, random_rotations(4, seed=7))
    assert not torch.equal(first, random_rotations(4, seed=8))


def test_error_is_relative_to_the_largest_expected_value():
    expected = torch.tensor([[1.0, -8.0], [2.0, 4.0]])
    assert relative_error(expected, expected) == 0
    assert relative_error(expected + 2, expected) == 0.25


def test_each_block_has_its_own_scale():
    expected = torch.tensor([[1e6, 1e-3, 0.0, 0.0]])
    actual = torch.tensor([[1e6, 0.0, 1e-3, 0.0]])
    assert relative_error(actual, expected) < 1e-8
    assert relative_error(actual, expected, irreps="1x0e+1x1o") == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_equal_non_finite_values_raise(bad):
    x = torch.tensor([1.0, bad])
    with pytest.raises(ComparisonError, match="NaN"):
        relative_error(x, x)


def test_equal_zeros_raise():
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]]), irreps="0e+1o")
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(0, 3), torch.zeros(0, 3))


def test_different_shapes_raise():
    with pytest.raises(ComparisonError, match=r"\(3, 1\)"):
        relative_error(torch.ones(3, 1), torch.ones(3))
