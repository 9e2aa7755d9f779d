"""Heads for vectors and coordinates: formulas, equivariance, errors."""

from __future__ import annotations

import pytest
import torch

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.nn.heads.vector import CoordinatesHead, VectorHead
from protgraph.testing.symmetry import act, random_reflections, random_rotations, relative_error

MIXED = FieldSpec("h", "node", "4x0e+2x1o+1x2e+1x1o")
SHIFT = torch.tensor([100.0, -200.0, 50.0], dtype=torch.float64)


def vectors(size=2):
    return Target("force", "node", "vectors", size, unit="Å")


def coordinates(size=4):
    return Target("backbone", "node", "coordinates", size, unit="Å")


def test_logits_are_combinations_of_vectors_with_invariant_coefficients(float64):
    head = VectorHead({"h": MIXED}, vectors(), hidden=(5,))
    h = torch.randn(7, MIXED.dim)
    s, v, tensor = h[:, :4], torch.cat([h[:, 4:10], h[:, 15:]], 1).unflatten(1, (3, 3)), h[:, 10:15]
    x = torch.cat([s, v[:, :2].norm(dim=2), tensor.norm(dim=1, keepdim=True), v[:, 2:].norm(dim=2)], 1)
    weight = head.combine.mlp(x).view(7, 2, 3)
    want = sum(weight[:, :, u, None] * v[:, None, u] for u in range(3)) / 3**0.5
    torch.testing.assert_close(head({"h": h})["logits"], want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [1, 3])
def test_vectors_rotate_and_do_not_translate(float64, size):
    head = VectorHead({"h": MIXED}, vectors(size))
    spec, h = head.out["logits"], torch.randn(7, MIXED.dim)
    there = head({"h": h})["logits"]
    assert there.shape == (7, *spec.shape) == (7, size, 3) == (7, *vectors(size).shape)
    for q in (*random_rotations(4), *random_reflections(4)):
        turned = head({"h": act(q, h, MIXED.irreps)})["logits"]
        assert relative_error(turned, act(q, there, spec.irreps, shape=spec.shape)) < 1e-12


@pytest.mark.parametrize("start", ["pos", "backbone"])
def test_coordinates_rotate_and_translate(float64, start):
    head = CoordinatesHead({"h": MIXED, "pos": field(start)}, coordinates())
    spec, h, pos = head.out["logits"], torch.randn(7, MIXED.dim), 10 * torch.randn(7, *field(start).trailing_shape)
    there = head({"h": h, "pos": pos})["logits"]
    assert there.shape == (7, 4, 3) and spec.irreps == "point" and spec.unit == "Å"
    base = pos if start == "backbone" else pos[:, None]
    torch.testing.assert_close(there - base, head.combine(h), rtol=1e-12, atol=1e-13)
    for q in (*random_rotations(4), *random_reflections(4)):
        moved = head({"h": act(q, h, MIXED.irreps), "pos": act(q, pos, "point", shift=SHIFT)})["logits"]
        assert relative_error(moved, act(q, there, "point", shift=SHIFT)) < 1e-12


def test_predictions_of_chiral_features_are_chiral():
    for h, chiral in ((MIXED, False), (MIXED.as_("h", chiral=True), True), (FieldSpec("h", "node", "1x0o+1x1o"), True)):
        assert VectorHead({"h": h}, vectors()).out["logits"].chiral == chiral
        assert CoordinatesHead({"h": h, "pos": field("pos")}, coordinates()).out["logits"].chiral == chiral


def test_a_vector_of_zero_gives_zero_and_a_finite_gradient():
    head = VectorHead({"h": MIXED}, vectors())
    h = torch.zeros(3, MIXED.dim, requires_grad=True)
    out = head({"h": h})["logits"]
    out.sum().backward()
    assert torch.equal(out, torch.zeros(3, 2, 3))
    assert torch.isfinite(h.grad).all() and h.grad[:, 4:10].abs().max() > 0


def test_missing_vectors_or_points_are_errors():
    with pytest.raises(WiringError, match="'h' is 8x0e"):
        VectorHead({"h": FieldSpec("h", "node", "8x0e")}, vectors())
    with pytest.raises(WiringError, match=r"\(N, 2, 3\).*'backbone' is point \(N, 4, 3\)"):
        CoordinatesHead({"h": MIXED, "pos": field("backbone")}, coordinates(2))
    with pytest.raises(WiringError, match="'orientation' is 2x1o"):
        CoordinatesHead({"h": MIXED, "pos": field("orientation")}, coordinates(2))
