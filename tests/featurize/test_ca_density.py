"""Density of CA atoms around each residue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph.featurize.exposure import CaDensity


def test_equals_its_formula_atom_by_atom(proteins):
    residues = proteins[0]
    pos = residues.pos.astype(float)
    got = CaDensity(functions=3, cutoff=15)(residues)["ca_density"]
    for i in (1, 17, len(residues) - 2):  # inside a chain
        away = sum((pos[i] - pos[k]) / np.linalg.norm(pos[i] - pos[k]) for k in (i - 1, i + 1))
        away /= np.linalg.norm(away)
        around, along = np.zeros(3), np.zeros(3)
        for j in range(len(residues)):
            v = pos[j] - pos[i]
            d = np.linalg.norm(v)
            if j != i and d < 15:
                b = np.sin(np.arange(1, 4) * np.pi * d / 15) / d * (1 - (d / 15) ** 2)
                around, along = around + b, along + b * (v @ away) / d
        assert np.abs(got[i] - np.concatenate([around, along])).max() < 1e-5


def test_the_core_is_denser_and_the_surface_open_to_the_side_chain(proteins):
    for residues in proteins[:4]:
        density = CaDensity(functions=1, cutoff=15)(residues)["ca_density"]
        depth = -np.linalg.norm(residues.pos - residues.pos.mean(0), axis=1)
        surface = depth < np.median(depth)
        assert np.corrcoef(density[:, 0], depth)[0, 1] > 0.3
        assert density[surface, 1].mean() < density[~surface, 1].mean()


def test_polarity_is_zero_without_chain_neighbors(proteins):
    # no residue is bonded to the next
    apart = replace(proteins[0], pos=proteins[0].pos * 3, backbone=proteins[0].backbone * 3)
    got = CaDensity()(apart)["ca_density"]
    assert np.abs(got[:, :6]).max() > 0
    assert np.abs(got[:, 6:]).max() == 0


def test_the_density_is_continuous_at_the_cutoff(proteins):
    residues = proteins[0]
    a = CaDensity(cutoff=12.0)(residues)["ca_density"]
    b = CaDensity(cutoff=12.0 + 1e-6)(residues)["ca_density"]
    assert np.abs(a - b).max() < 1e-5
