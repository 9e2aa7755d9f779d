"""Half-sphere exposure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.errors import OptionError
from protgraph.featurize.exposure import HalfSphereExposure


def test_equals_its_formula_atom_by_atom(proteins):
    residues = proteins[0]
    pos = residues.pos.astype(float)
    got = HalfSphereExposure(radii=(9.0, 20.0))(residues)["half_sphere_exposure"]
    i = 17  # inside a chain
    away = sum((pos[i] - pos[k]) / np.linalg.norm(pos[i] - pos[k]) for k in (i - 1, i + 1))
    for column, (r, side) in enumerate([(9.0, 1), (9.0, -1), (20.0, 1), (20.0, -1)]):
        total = 0.0
        for j in range(len(residues)):
            v = pos[j] - pos[i]
            d = np.linalg.norm(v)
            if j != i and d < r:
                total += (1 - (d / r) ** 2) ** 2 * (1 + side * v @ away / d / np.linalg.norm(away)) / 2
        x = (np.arange(100_000) + 0.5) / 100_000
        filled = 2 * np.pi * r**3 * np.mean((1 - x**2) ** 2 * x**2) / 133
        assert got[i, column] == pytest.approx(total / filled, rel=1e-5)


def test_the_core_of_a_globule_is_full_on_both_sides_and_its_surface_open_to_the_side_chain(proteins):
    for residues in proteins[:4]:
        up, down = HalfSphereExposure()(residues)["half_sphere_exposure"][:, :2].T
        depth = -np.linalg.norm(residues.pos - residues.pos.mean(0), axis=1)
        assert np.corrcoef(up, depth)[0, 1] > 0.3
        assert np.abs(up - down)[depth > np.quantile(depth, 0.9)].mean() < np.abs(up - down).mean()
        assert 0 < np.median(up) < np.median(down) < 1.5


def test_both_sides_are_equal_without_a_direction(proteins):
    residues = proteins[0]
    far = residues.pos * 3  # no residue is linked to the next any more
    alone = replace(residues, pos=far, backbone=residues.backbone * 3)
    got = HalfSphereExposure()(alone)["half_sphere_exposure"]
    assert np.array_equal(got[:, ::2], got[:, 1::2])


@pytest.mark.parametrize("radii", [(), (0.0,), (-1, 5), ("8",)])
def test_radii_must_be_above_zero(radii):
    with pytest.raises(OptionError, match="radii above 0"):
        HalfSphereExposure(radii=radii)
