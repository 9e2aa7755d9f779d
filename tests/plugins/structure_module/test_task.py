"""FAPE against explicit sums, its invariances, metrics after superposition, and hidden coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.structure_module.task import STRUCTURE_PREDICTION, fape, lddt_ca, rmsd_superposed, tm_score
from scipy.spatial.transform import Rotation

import protgraph as pg
from protgraph.data.graph.protein_graph import collate
from protgraph.task.predictions import SplitPredictions
from protgraph.testing import make_protein
from protgraph.testing.symmetry import random_rotations


def points(n: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(make_protein((n,), seed=seed).backbone)


def written_out(x: np.ndarray, y: np.ndarray, clamp: float) -> float:
    """Algorithm 28, residue by residue, over what is known."""

    def frame(atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, ca, c = atoms[:3]
        e1 = (c - ca) / np.linalg.norm(c - ca)
        u2 = (n - ca) - e1 * (e1 @ (n - ca))
        e2 = u2 / np.linalg.norm(u2)
        return np.stack([e1, e2, np.cross(e1, e2)], 1), ca

    errors = []
    for predicted, true in zip(x, y, strict=True):
        if np.isnan(true[:3]).any():
            continue
        (r, t), (r_true, t_true) = frame(predicted), frame(true)
        for atom, true_atom in zip(x.reshape(-1, 3), y.reshape(-1, 3), strict=True):
            if not np.isnan(true_atom).any():
                apart = r.T @ (atom - t) - r_true.T @ (true_atom - t_true)
                errors.append(min(np.sqrt(apart @ apart + 1e-4), clamp) / 10)
    return float(np.mean(errors))


def test_fape_is_algorithm_28_over_known_atoms():
    x, y = points(7, 1), points(7, 2)
    y[2, 3], y[4, 0] = torch.nan, torch.nan
    for clamp in (10.0, 3.0):
        expected = written_out(x.numpy(), y.numpy(), clamp)
        assert abs(float(fape(x, y, clamp=clamp, clamped=1.0)) - expected) <= 1e-12
        mixed = 0.9 * expected + 0.1 * written_out(x.numpy(), y.numpy(), 1e9)
        assert abs(float(fape(x, y, clamp=clamp)) - mixed) <= 1e-12


def test_fape_is_invariant_to_rigid_motions_but_not_to_reflection():
    x, y = points(9, 1), points(9, 2)
    for rotation in random_rotations(4, seed=3):
        assert torch.allclose(fape(x @ rotation.T + 50, y), fape(x, y), rtol=0, atol=1e-10)
        assert torch.allclose(fape(x, y @ rotation.T - 80), fape(x, y), rtol=0, atol=1e-10)
    assert float(fape(y @ random_rotations(1)[0].T + 7, y)) <= 1e-2 / 10 + 1e-9  # √ε / 10 Å
    assert float(fape(-y, y)) > 0.1


def test_fape_without_known_atoms_is_0_with_zero_gradient():
    x = points(3).requires_grad_()
    loss = fape(x, torch.full_like(x, torch.nan))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not x.grad.any()


def test_metrics_are_invariant_to_motion_and_rmsd_equals_scipy():
    truth = points(30).float()
    q = torch.from_numpy(Rotation.from_euler("xyz", [1, 2, 3]).as_matrix()).float()
    moved = SplitPredictions(truth @ q.T + 20, truth)
    assert lddt_ca(moved) == pytest.approx(1)
    assert rmsd_superposed(moved) == pytest.approx(0, abs=1e-4)
    assert tm_score(moved) == pytest.approx(1, abs=1e-6)
    g = torch.Generator().manual_seed(0)
    off = SplitPredictions((truth + torch.randn(truth.shape, generator=g)) @ q.T, truth)
    a, b = off.logits[:, 1].double().numpy(), truth[:, 1].double().numpy()
    a, b = a - a.mean(0), b - b.mean(0)
    _, error = Rotation.align_vectors(b, a)
    assert rmsd_superposed(off) == pytest.approx(error / np.sqrt(30), rel=1e-4)
    assert 0.3 < lddt_ca(off) < 0.9
    moved = Rotation.align_vectors(b, a)[0].apply(a)
    d0 = 1.24 * 15 ** (1 / 3) - 1.8  # of 30 residues
    assert tm_score(off) == pytest.approx((1 / (1 + ((moved - b) ** 2).sum(1) / d0**2)).mean(), rel=1e-6)
    assert 0.2 < tm_score(off) < 1


def test_metrics_superpose_each_chain_and_omit_unknown_residues():
    a, b = points(12, 1).float(), points(8, 2).float()
    y = torch.cat([a, b])
    y[3] = torch.nan
    chain = torch.tensor([0] * 12 + [1] * 8)
    o = SplitPredictions(torch.cat([a + 5, b @ torch.diag(torch.tensor([-1.0, -1.0, 1.0]))]), y, chain)
    assert rmsd_superposed(o) == pytest.approx(0, abs=1e-4)


def test_labels_are_the_backbone_and_coordinates_are_hidden():
    residues = make_protein((9,), seed=4)
    missing = residues.backbone.copy()
    missing[2, 3] = np.nan
    residues = replace(residues, backbone=missing)
    y = STRUCTURE_PREDICTION.labels(residues)
    assert y.shape == (9, 4, 3)
    assert np.isnan(y[2, 3]).all()
    assert np.allclose(y[:, 1].mean(0), 0, atol=1e-4)
    assert np.allclose(y[5] - y[4], residues.backbone[5] - residues.backbone[4], atol=1e-4)
    assert not STRUCTURE_PREDICTION.inputs.visible(residues, "x").has_coordinates


def test_a_batch_is_the_mean_over_its_proteins():
    sizes = (5, 8)
    x, y = torch.cat([points(n, 1) for n in sizes]), torch.cat([points(n, 2) for n in sizes])
    batch = collate([pg.build_graph(make_protein((n,)), []) for n in sizes])
    mean = (fape(x[:5], y[:5]) + fape(x[5:], y[5:])) / 2
    assert torch.equal(STRUCTURE_PREDICTION.batch_loss(fape, x, y, batch), mean)
