"""Areas of residues and what they are relative to."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import OptionError
from protgraph.featurize.surface_area import Sasa
from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors.sasa import MAX_SASA, residue_sasa


def test_areas_are_those_of_the_structure(proteins):
    residues = min(proteins, key=len)
    made = Sasa(points=200)(residues)
    area = residue_sasa(residues, points=200)
    assert np.allclose(made["sasa"][:, 0], area)
    assert np.allclose(made["relative_sasa"][:, 0], area / MAX_SASA[residues.aatype])


def test_chains_shield_each_other(structures_dir):
    dimer = clean(load_structure(structures_dir / "1hvr.bcif"))
    own = dimer.chain == "A"
    together, alone = Sasa()(dimer)["sasa"][own], Sasa()(dimer.select(own))["sasa"]
    assert (together <= alone + 4).all()  # as exact as the points
    assert together.sum() < alone.sum() - 500  # Å²


def test_options_are_checked():
    for options in ({"points": 0}, {"points": 1.5}, {"probe": -1}):
        with pytest.raises(OptionError, match=next(iter(options))):
            Sasa(**options)
