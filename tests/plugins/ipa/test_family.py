"""Models of invariant point attention: equivariant backbones and vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.testing import make_protein
from protgraph.testing.symmetry import random_rotations, relative_error

BACKBONE = pg.Target("backbone", "node", "coordinates", 4, ("N", "CA", "C", "O"), unit="Å")
ATOM = pg.Target("atom", "node", "coordinates", 1, unit="Å")
VECTOR = pg.Target("push", "node", "vectors", 2, unit="Å")
SHIFT = np.array([120.0, -150.0, 90.0])


@pytest.fixture(scope="module")
def protein() -> pg.Residues:
    return make_protein((12, 7), seed=5)


def turned(residues, rotation):
    moved = {name: getattr(residues, name) @ rotation.T + SHIFT for name in ("pos", "backbone", "atom_pos")}
    return replace(residues, **moved)


@pytest.mark.parametrize(
    ("model", "target", "shift"), [("ipa.backbone", BACKBONE, SHIFT), ("ipa", ATOM, SHIFT), ("ipa", VECTOR, 0 * SHIFT)]
)
def test_spatial_predictions_are_equivariant(protein, model, target, shift):
    built = pg.build_model(model, target, seed=0).double().eval()
    before = built(built.plan.precompute(protein))["logits"]
    assert before.shape == (19, target.size, 3)
    for rotation in random_rotations(4, seed=1):
        after = built(built.plan.precompute(turned(protein, rotation.numpy())))["logits"]
        assert relative_error(after, before @ rotation.T + torch.from_numpy(shift)) <= 1e-10


def test_placed_atoms_form_a_peptide_at_the_predicted_frames(protein):
    built = pg.build_model("ipa.backbone", BACKBONE, seed=0).double().eval()
    graph = built.plan.precompute(protein)
    fields = built.embed(graph)
    placed = fields["moved_backbone"]
    assert torch.equal(placed[:, 1], fields["moved"])
    lengths = (placed[:, [1, 2, 3]] - placed[:, [0, 1, 2]]).norm(dim=-1).mean(0)  # N–CA, CA–C, C–O
    assert torch.allclose(lengths, torch.tensor([1.46, 1.53, 1.23], dtype=lengths.dtype), atol=0.01)
    torch.testing.assert_close(fields["moved"] - graph.pos, fields["motion"], rtol=0, atol=1e-10)


def test_gradients_reach_every_weight_through_rotated_frames(protein):
    built = pg.build_model("ipa.backbone", BACKBONE, seed=0).eval()
    built(collate([built.plan.precompute(protein), built.plan.precompute(make_protein((9,), seed=6))]))[
        "logits"
    ].square().sum().backward()
    without = [name for name, p in built.named_parameters() if p.grad is None or not p.grad.any()]
    assert not without
