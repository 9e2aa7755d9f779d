"""Neighbor counts: masks at chain ends, means and maxima over atoms."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.featurize.exposure import ContactNumber, HalfSphereExposure, Protrusion
from protgraph.structure.descriptors.ca_trace import sidechain_direction
from protgraph.structure.descriptors.solvent_exposure import cb_direction, half_sphere_exposure, protrusion


def test_half_spheres_equal_the_descriptor_or_are_masked(proteins):
    for residues in proteins[:6]:
        features = HalfSphereExposure(radius=11)(residues)
        for name, side in (
            ("half_sphere_ca", sidechain_direction(residues)),
            ("half_sphere_cb", cb_direction(residues)),
        ):
            there = side.any(1)
            assert (features[f"{name}_mask"][:, 0] == there).all()
            expected = half_sphere_exposure(residues, side, radius=11)
            assert (features[name][there] == expected[there]).all() and not features[name][~there].any()
        assert not features["half_sphere_ca_mask"][[0, -1]].any()


def test_half_spheres_add_up_to_the_contact_number(proteins):
    residues = proteins[0]
    features = HalfSphereExposure(radius=10)(residues)
    assert (
        features["half_sphere_cb"].sum(1, keepdims=True) == ContactNumber(radius=10)(residues)["contact_number"]
    ).all()


def test_protrusion_is_mean_and_maximum_over_atoms(proteins):
    residues = proteins[0]
    features, index = Protrusion()(residues)["protrusion"], protrusion(residues)
    for row in range(0, len(residues), 7):
        own = index[residues.atom_residue == row]
        assert features[row] == pytest.approx([own.mean(), own.max()], rel=1e-5)


def test_loops_and_ends_protrude(proteins):
    for residues in proteins:
        exposed = ContactNumber()(residues)["contact_number"][:, 0]
        stick = Protrusion()(residues)["protrusion"][:, 0]
        assert np.corrcoef(exposed, stick)[0, 1] < -0.6
