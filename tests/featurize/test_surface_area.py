"""Absolute and relative surface areas of residues."""

from __future__ import annotations

import numpy as np

from protgraph.featurize.exposure import Sasa
from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors.sasa import MAX_SASA, residue_sasa


def test_areas_equal_the_descriptor(proteins):
    residues = min(proteins, key=len)
    features = Sasa(points=200)(residues)
    area = residue_sasa(residues, points=200)
    assert np.allclose(features["sasa"][:, 0], area)
    assert np.allclose(features["relative_sasa"][:, 0], area / MAX_SASA[residues.aatype])


def test_chains_bury_each_other(structures_dir):
    dimer = clean(load_structure(structures_dir / "1hvr.bcif"))
    own = dimer.chain == "A"
    together, alone = Sasa()(dimer)["sasa"][own], Sasa()(dimer.select(own))["sasa"]
    assert (together <= alone + 4).all()  # error of 1000 points
    assert together.sum() < alone.sum() - 500  # Å²
