"""Random rotations and reflections."""

from __future__ import annotations

import torch

from protgraph.symmetry import random_reflections, random_rotations


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
