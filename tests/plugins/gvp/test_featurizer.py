"""GVP node features against the published program, and their masks at gaps, which the program ignores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from protgraph_plugins.gvp.featurizer import GvpFeatures

from protgraph.featurize.backbone import SidechainDirection
from protgraph.structure.residues.chain_breaks import linked_to_next


def test_features_equal_gvp_pytorch(shared_reference, proteins):
    with np.load(shared_reference / "gvp" / "features_6MRR.npz") as vectors:
        backbone, scalars, directions = (vectors[name] for name in ("in/coords", "out/node_s", "out/node_v"))
    n = len(backbone)
    residues = next(r for r in proteins if len(r) >= n)
    residues = residues.select(np.arange(len(residues)) < n)
    residues = replace(residues, pos=backbone[:, 1], backbone=backbone, chain=np.full(n, "A"))
    features = GvpFeatures()(residues)
    assert np.abs(features["gvp_scalars"] - scalars).max() < 1e-5
    assert np.abs(features["gvp_vectors"] - directions).max() < 1e-5


def test_features_are_undefined_at_gaps(proteins):
    for residues in proteins:
        features, linked = GvpFeatures()(residues), linked_to_next(residues)
        assert not features["gvp_vectors"][~linked, 0].any()
        assert (features["gvp_scalars"][~linked][:, [1, 2, 4, 5]] == [1, 1, 0, 0]).all()


def test_the_side_chain_direction_is_close_to_the_virtual_cb(proteins):
    for residues in proteins:
        theirs, ours = (
            GvpFeatures()(residues)["gvp_vectors"][:, 2],
            SidechainDirection()(residues)["sidechain_direction"],
        )
        cosine = (theirs * ours).sum(1)[theirs.any(1)]
        assert np.median(cosine) > 0.99
