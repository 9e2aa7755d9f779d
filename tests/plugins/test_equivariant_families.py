"""``se3_transformer`` and ``mace`` from a structure file to predictions: equivariance and gradients."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.symmetry import random_rotations, relative_error

SMALL = ["se3_transformer", "mace"]
CLASSES = pg.Target("state", "node", "classification", 3)
VECTORS = pg.Target("shift", "node", "vectors", 1, unit="Å")
SHIFT = torch.tensor([100.0, -80.0, 60.0], dtype=torch.float64)


def logits(model, residues):
    return model(model.plan.precompute(residues))["logits"]


@pytest.mark.parametrize("name", [*SMALL, "se3_transformer.fuchs2020"])
def test_predictions_are_invariant(residues, moved, float64, name):
    model = pg.build_model(name, CLASSES, seed=0).double().eval()
    there = logits(model, moved(residues, torch.eye(3), 0 * SHIFT))
    assert there.shape == (76, 3)
    assert not model.spec.dead_layers()
    for q in random_rotations(2):
        assert relative_error(logits(model, moved(residues, q, SHIFT)), there) < 1e-10


@pytest.mark.parametrize("name", SMALL)
def test_predicted_vectors_are_equivariant(residues, moved, float64, name):
    model = pg.build_model(name, VECTORS, seed=0).double().eval()
    there = logits(model, moved(residues, torch.eye(3), 0 * SHIFT))
    for q in random_rotations(2):
        assert relative_error(logits(model, moved(residues, q, SHIFT)), there @ q.T) < 1e-10


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_gets_a_gradient(residues, name):
    model = pg.build_model(name, CLASSES, seed=0)
    logits(model, residues).square().sum().backward()
    assert not [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]


def test_the_published_variant_of_mace_is_built(residues):
    model = pg.build_model("mace.batatia2022", CLASSES, seed=0)
    assert logits(model, residues).shape == (76, 3)
    assert model.fields["atomic"].irreps == "256x0e+256x1o+256x2e+256x3o"
