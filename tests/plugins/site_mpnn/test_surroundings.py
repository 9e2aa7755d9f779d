"""Points, charges and composition around residues against plain loops over residues and atoms."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.site_mpnn.descriptors import (
    RESIDUE_CLASSES,
    SHELLS,
    charge_sites,
    charge_sums,
    local_centers,
    outward_direction,
    probe_occupancy,
    probe_points,
    residue_classes,
    screened_potential,
    shell_composition,
    sidechain_points,
)

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.residues.alphabet import ALPHABET

BACKBONE = {"N", "CA", "C", "O", "OXT"}
ATOMS = {"K": ["NZ"], "R": ["NH1", "NH2"], "H": ["ND1", "NE2"], "D": ["OD1", "OD2"], "E": ["OE1", "OE2"]}
CHARGE = {"K": 1.0, "R": 1.0, "H": 0.5, "D": -1.0, "E": -1.0}


@pytest.fixture(scope="module")
def protein(structures_dir) -> Residues:
    return clean(load_structure(sorted(structures_dir.glob("*.bcif"))[0]))


def atoms_of(protein, n) -> dict[str, np.ndarray]:
    rows = np.flatnonzero(protein.atom_residue == n)
    return {str(protein.atom_name[r]): protein.atom_pos[r].astype(np.float64) for r in rows}


def direction(v) -> np.ndarray:
    return v / np.linalg.norm(v) if v.any() else v


def test_center_and_tip_of_side_chains(protein):
    found = sidechain_points(protein)
    for n in range(len(protein)):
        ca = protein.pos[n].astype(np.float64)
        side = [x for name, x in atoms_of(protein, n).items() if name not in BACKBONE]
        if side:
            assert np.allclose(found.center[n], np.mean(side, 0), atol=1e-9)
            assert np.allclose(found.tip[n], max(side, key=lambda x: np.linalg.norm(x - ca)), atol=1e-9)
        else:
            assert protein.sequence[n] == "G"
            assert np.allclose(found.center[n], virtual_cb(protein.backbone[n : n + 1])[0], atol=1e-5)
        assert np.allclose(found.direction[n], direction(found.center[n] - ca))
    assert "G" in protein.sequence


def test_outward_direction_points_away_from_the_local_mean(protein):
    ca = protein.pos.astype(np.float64)
    found = outward_direction(protein, radius=10.0)
    for n in range(len(protein)):
        near = ca[np.linalg.norm(ca - ca[n], axis=1) <= 10.0]
        assert np.allclose(found[n], direction(ca[n] - near.mean(0)), atol=1e-9)


def test_potential_equals_a_sum_over_charged_groups(protein):
    points, center = probe_points(protein), sidechain_points(protein).center
    groups = {}
    for n, letter in enumerate(protein.sequence):
        if letter in CHARGE:
            atoms = atoms_of(protein, n)
            there = [atoms[name] for name in ATOMS[letter] if name in atoms]
            groups[n] = (np.mean(there, 0) if there else center[n], CHARGE[letter])
    position, charge, owner = charge_sites(protein)
    assert owner.tolist() == list(groups)
    assert np.allclose(position, [x for x, _ in groups.values()])
    assert charge.tolist() == [q for _, q in groups.values()]
    potential = screened_potential(protein, points, lengths=(4.0, 30.0))
    sums = charge_sums(protein, points, radius=8.0)
    for n in range(0, len(protein), 7):
        for p in range(points.shape[1]):
            near = [(np.linalg.norm(points[n, p] - x), q) for m, (x, q) in groups.items() if m != n]
            expected = [
                sum(10 * q * np.exp(-max(d, 3.0) / length) / max(d, 3.0) for d, q in near) for length in (4.0, 30.0)
            ]
            assert potential[n, p] == pytest.approx(expected, abs=1e-12)
            expected = [sum(abs(q) * np.exp(-((d / 8) ** 2)) for d, q in near if sign * q > 0) for sign in (1, -1)]
            assert sums[n, p] == pytest.approx(expected, abs=1e-12)


def test_charges_of_hidden_side_chains_are_at_their_centers(protein):
    bare = protein.hide("sidechain")
    position, _, owner = charge_sites(bare)
    assert len(owner) == len(charge_sites(protein)[2])
    assert np.allclose(position, sidechain_points(bare).center[owner])
    assert not len(charge_sites(protein.hide("residue_type"))[2])


def test_classes_hold_every_type_once():
    assert sorted("".join(RESIDUE_CLASSES)) == sorted(set(ALPHABET) - {"X"})
    classes = residue_classes(np.arange(len(ALPHABET)))
    assert (classes.sum(1) == [letter != "X" for letter in ALPHABET]).all()


def test_shells_equal_a_sum_over_pairs(protein):
    exposure = np.linspace(0.0, 1.0, len(protein))
    side, found = sidechain_points(protein), shell_composition(protein, exposure)
    for n in range(0, len(protein), 5):
        expected = np.zeros((7, len(RESIDUE_CLASSES)))
        for m, letter in enumerate(protein.sequence):
            vector = side.center[m] - side.center[n]
            d = np.linalg.norm(vector)
            if m == n or letter == "X" or d > 27.0:
                continue
            column = next(k for k, group in enumerate(RESIDUE_CLASSES) if letter in group)
            weights = [np.exp(-(((d - mean) / width) ** 2)) for mean, width in SHELLS]
            expected[:4, column] += np.array(weights) * exposure[m]
            expected[4:6, column] += weights[:2]
            cosine = max(0.0, float(side.direction[n] @ vector) / d)
            expected[6, column] += np.exp(-((d / 10) ** 2)) * cosine * exposure[m]
        assert np.allclose(found[n], expected, atol=1e-12)


def test_occupancy_and_local_centers_equal_loops(protein):
    points, radii = probe_points(protein), (4.5, 10.0)
    occupancy, centers = probe_occupancy(protein, points, radii=radii), local_centers(protein, radii=radii)
    atoms, ca = protein.atom_pos.astype(np.float64), protein.pos.astype(np.float64)
    side = sidechain_points(protein).direction
    for n in range(0, len(protein), 5):
        for k, radius in enumerate(radii):
            for p in range(points.shape[1]):
                inside = (np.linalg.norm(atoms - points[n, p], axis=1) <= radius).sum()
                assert occupancy[n, p, k] == pytest.approx(inside / radius**2)
            away = ca[n] - ca[np.linalg.norm(ca - ca[n], axis=1) <= radius].mean(0)
            expected = np.linalg.norm(away) / radius, direction(away) @ side[n]
            assert centers[n, k] == pytest.approx(expected, abs=1e-9)
