"""Secondary structure as categories: indices of letters, missing backbones, three states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.data.graph.fields import field
from protgraph.errors import OptionError
from protgraph.featurize.backbone import Dssp, PSea
from protgraph.structure.descriptors.ca_trace import p_sea
from protgraph.structure.descriptors.dssp import DSSP_STATES, dssp, three_states


def test_categories_are_indices_of_the_letters(proteins):
    for residues in proteins:
        letters = dssp(residues)
        assert (np.array(list(DSSP_STATES + "-"))[Dssp()(residues)["dssp"]] == letters).all()
        assert (np.array(list("HEC-"))[Dssp(states=3)(residues)["dssp"]] == three_states(letters)).all()
        assert (PSea()(residues)["p_sea"] == p_sea(residues)).all()


def test_a_ca_trace_has_p_sea_only(proteins):
    backbone = np.full_like(proteins[0].backbone, np.nan)
    backbone[:, 1] = proteins[0].pos
    trace = replace(proteins[0], backbone=backbone)
    assert (Dssp()(trace)["dssp"] == len(DSSP_STATES)).all()
    assert (Dssp(states=3)(trace)["dssp"] == 3).all()
    assert len(set(PSea()(trace)["p_sea"].tolist())) > 1


def test_the_number_of_classes_follows_the_states():
    assert (Dssp().out["dssp"].classes, Dssp(states=3).out["dssp"].classes, field("dssp").classes) == (9, 4, 9)
    with pytest.raises(OptionError, match="states="):
        Dssp(states=4)


def test_a_mirror_image_has_the_same_bonds_but_fewer_helices_by_p_sea(proteins, move):
    residues = max(proteins, key=lambda r: (dssp(r) == "H").mean())
    mirrored = move(residues, -np.eye(3))
    assert (Dssp()(mirrored)["dssp"] == Dssp()(residues)["dssp"]).all()
    before, after = PSea()(residues)["p_sea"], PSea()(mirrored)["p_sea"]
    assert (after == 0).sum() < 0.8 * (before == 0).sum()  # hence the field is marked chiral
