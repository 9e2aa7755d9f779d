"""Action of O(3) on fields."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from e3nn import o3

from protgraph.errors import FieldError
from protgraph.symmetry import act, random_reflections, random_rotations, representation

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
