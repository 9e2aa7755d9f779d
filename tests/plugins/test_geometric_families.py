"""Geometric families on a real protein: vectors and coordinates as targets."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.testing.symmetry import random_rotations, relative_error

#: Families that predict vectors, and those that also predict coordinates.
WITH_VECTORS = ("egnn", "gvp", "painn", "se3_transformer", "mace")
WITH_COORDINATES = ("egnn", "gvp")
CLASSES = pg.Target("state", "node", "classification", 3)
VECTORS = pg.Target("shift", "node", "vectors", 1, unit="Å")
COORDINATES = pg.Target("place", "node", "coordinates", 1, unit="Å")
SHIFT = torch.tensor([100.0, -80.0, 60.0], dtype=torch.float64)


def logits(model, residues):
    return model(model.plan.precompute(residues))["logits"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(pytest.param(name, VECTORS, id=f"{name}-vectors") for name in WITH_VECTORS),
        *(pytest.param(name, COORDINATES, id=f"{name}-coordinates") for name in WITH_COORDINATES),
    ],
)
def test_predictions_are_equivariant(residues, moved, float64, name, target):
    model = pg.build_model(name, target, seed=0).double().eval()
    for layer in model.layers:
        if hasattr(layer, "coord_mlp"):
            layer.coord_mlp[2].weight.data *= 300  # larger displacements
    there = logits(model, moved(residues, torch.eye(3), 0 * SHIFT))
    assert there.shape == (76, 1, 3)
    for q in random_rotations(2):
        shift = SHIFT if target is COORDINATES else 0 * SHIFT
        assert relative_error(logits(model, moved(residues, q, SHIFT)) - shift, there @ q.T) < 1e-10


def test_egnn_gives_the_moved_positions(residues):
    model = pg.build_model("egnn", COORDINATES, seed=0)
    f = model.embed(model.plan.precompute(residues))
    assert model.fields["moved"].irreps == "point"
    torch.testing.assert_close(f["motion"], f["moved"] - f["pos"], rtol=0, atol=1e-4)
    assert 0 < f["motion"].norm(dim=1).max() < 1
    assert torch.equal(f["h"][:, -3:], f["motion"])


def test_a_model_of_scalars_has_no_vectors_to_predict():
    with pytest.raises(pg.ProtgraphError, match="vectors"):
        pg.build_model("schnet", VECTORS)


def test_the_published_variant_of_mace_predicts_from_its_atomic_basis(residues):
    model = pg.build_model("mace.batatia2022", CLASSES, seed=0)
    assert logits(model, residues).shape == (76, 3)
    assert model.fields["atomic"].irreps == "256x0e+256x1o+256x2e+256x3o"
