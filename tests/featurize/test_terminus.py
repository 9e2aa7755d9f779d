"""Sequence distances from the chain termini."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph.featurize.residue_features import TerminusDistance


def test_distances_equal_loops_over_chains(proteins):
    for residues in proteins:
        whole = TerminusDistance(relative=False)(residues)["terminus_distance"]
        part = TerminusDistance()(residues)["terminus_distance"]
        for chain in residues.chain_names:
            own = residues.chain == chain
            place = residues.seq_pos[own]
            assert (whole[own, 0] == place - place.min()).all() and (whole[own, 1] == place.max() - place).all()
            if own.sum() > 1:
                assert np.allclose(part[own].sum(1), 1) and part[own].min() == 0


def test_gaps_are_included_and_sequences_have_termini(proteins):
    residues = replace(proteins[0].select(np.arange(len(proteins[0])) < 3), seq_pos=np.array([0, 1, 11]))
    assert TerminusDistance(relative=False)(residues)["terminus_distance"].tolist() == [[0, 11], [1, 10], [11, 0]]
    assert not TerminusDistance.needs_coordinates
    alone = residues.select(np.arange(3) == 1)
    assert TerminusDistance()(alone)["terminus_distance"].tolist() == [[0, 0]]
