"""Side-chain centroids against loops over residues."""

from __future__ import annotations

import numpy as np

from protgraph.featurize.backbone import SidechainCentroid
from protgraph.structure.residues.residues import BACKBONE


def test_centroids_equal_loops(proteins):
    for residues in proteins[:4]:
        features = SidechainCentroid()(residues)
        for row in range(len(residues)):
            own = (residues.atom_residue == row) & ~np.isin(residues.atom_name, [*BACKBONE, "OXT"])
            assert features["sidechain_centroid_mask"][row, 0] == own.any()
            expected = residues.atom_pos[own].astype(float).mean(0) - residues.pos[row] if own.any() else np.zeros(3)
            assert np.allclose(features["sidechain_centroid"][row], expected, atol=1e-5)


def test_glycine_and_hidden_side_chains_have_no_centroid(proteins):
    for residues in proteins[:4]:
        glycine = residues.res_name == "GLY"
        assert not SidechainCentroid()(residues)["sidechain_centroid_mask"][glycine].any()
        assert not SidechainCentroid()(residues.hide("sidechain"))["sidechain_centroid"].any()
