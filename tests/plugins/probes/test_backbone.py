"""Placed backbone atoms against those of crystal structures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.probes.backbone import complete_backbone

import protgraph as pg


@pytest.fixture(scope="module")
def residues():
    dataset = pg.load_dataset("pdb_core")
    return dataset.read(dataset.examples("secondary_structure", "test")[0])


def without(residues, atoms: list[int]):
    backbone = residues.backbone.copy()
    backbone[:, atoms] = np.nan
    return replace(residues, backbone=backbone)


def test_oxygens_are_placed_in_the_plane_of_the_peptide_bond(residues):
    placed = complete_backbone(without(residues, [3]))
    error = np.linalg.norm(placed.backbone[:, 3] - residues.backbone[:, 3], axis=1)
    assert np.isfinite(error).sum() > 0.9 * len(residues)
    assert np.nanmax(error) < 0.5 and np.nanmedian(error) < 0.1
    assert np.array_equal(placed.backbone[:, :3], residues.backbone[:, :3], equal_nan=True)


def test_a_trace_of_ca_gets_a_backbone_near_the_true_one(residues):
    placed = complete_backbone(without(residues, [0, 2, 3]))
    error = np.linalg.norm(placed.backbone - residues.backbone, axis=2)  # (N, 4)
    assert np.isfinite(error).all(1).sum() > 0.85 * len(residues)
    assert np.nanmedian(error[:, 0]) < 0.25 and np.nanmedian(error[:, 2]) < 0.3 and np.nanmedian(error[:, 3]) < 0.9
    # the first residue has no N, and the last one neither C nor O
    assert np.isnan(placed.backbone[0, 0]).all() and np.isnan(placed.backbone[-1, 2:]).all()


def test_atoms_do_not_depend_on_the_frame(residues):
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    trace = without(residues, [0, 2, 3])
    turned = replace(trace, backbone=(trace.backbone @ turn).astype(np.float32), pos=trace.pos @ turn)
    expected = complete_backbone(trace).backbone @ turn
    np.testing.assert_allclose(complete_backbone(turned).backbone, expected, atol=2e-4)


def test_a_complete_backbone_and_gaps_stay_as_they_are(residues):
    gap = residues.select(np.arange(len(residues)) % 10 != 5)
    placed = complete_backbone(gap)
    assert np.array_equal(placed.backbone, gap.backbone, equal_nan=True)
    trace = complete_backbone(without(gap, [0, 2, 3]))
    assert np.isnan(trace.backbone[4, 2]).all()  # before a gap


def test_one_residue_has_no_neighbors_to_place_atoms_from(residues):
    one = without(residues.select(np.arange(len(residues)) == 3), [0, 2, 3])
    assert np.isnan(complete_backbone(one).backbone[0, [0, 2, 3]]).all()
