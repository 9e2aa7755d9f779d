"""Points on the accessible surface against spheres, areas of biotite and plain loops; independence of orientation."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.surface import surface_points
from protgraph_plugins.surface.points import (
    CHEMISTRY,
    DIRECTIONS,
    SHAPE,
    atom_chemistry,
    point_chemistry,
    point_shape,
)
from scipy.spatial.transform import Rotation

import protgraph as pg
from protgraph.structure import Residues
from protgraph.structure.descriptors import atom_sasa, protor_radii

PROBE = 1.4


@pytest.fixture(scope="module")
def protein(structures_dir) -> Residues:
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def points(protein):
    return surface_points(protein)


def test_points_touch_their_atom_and_are_inside_no_other_sphere(protein, points):
    radius = protor_radii(protein) + PROBE
    distance = np.linalg.norm(points.pos[:, None] - protein.atom_pos.astype(np.float64), axis=2)  # (M, A)
    rows = np.arange(len(points.atom))
    assert np.abs(distance[rows, points.atom] - radius[points.atom]).max() < 1e-9
    outside = distance - radius
    outside[rows, points.atom] = np.inf
    gap = outside.min(1)
    assert (gap > 0).all()
    t = (gap / 0.5).clip(max=1.0)
    assert np.abs(points.weight - (3 * t**2 - 2 * t**3)).max() < 1e-9
    assert 0.1 < (points.weight == 1).mean() < 0.9


def test_no_accessible_direction_is_missing(protein, points):
    radius = protor_radii(protein) + PROBE
    pos = protein.atom_pos.astype(np.float64)
    n, ca, c = protein.backbone[:, :3].astype(np.float64).swapaxes(0, 1)
    counts = np.zeros(len(pos), int)
    for a in range(len(pos)):
        i = protein.atom_residue[a]
        e1 = (c - ca)[i] / np.linalg.norm((c - ca)[i])
        e3 = np.cross(e1, (n - ca)[i])
        e3 /= np.linalg.norm(e3)
        test = pos[a] + radius[a] * DIRECTIONS @ np.stack([e1, np.cross(e3, e1), e3])
        distance = np.linalg.norm(test[:, None] - pos, axis=2) - radius
        distance[:, a] = np.inf
        counts[a] = (distance.min(1) > 0).sum()
    assert np.array_equal(np.bincount(points.atom, minlength=len(pos)), counts)


def test_areas_agree_with_those_of_biotite(protein, points):
    radius = protor_radii(protein) + PROBE
    area = np.bincount(points.atom, 4 * np.pi * radius[points.atom] ** 2 / 12, len(radius))
    reference = atom_sasa(protein, points=1000)
    assert area.sum() == pytest.approx(reference.sum(), rel=0.08)
    of_residue = np.bincount(protein.atom_residue, area)
    expected = np.bincount(protein.atom_residue, reference)
    assert np.corrcoef(of_residue, expected)[0, 1] > 0.95
    assert 3 < len(points.atom) / len(protein) < 9  # a small protein has much surface for its residues


def test_an_atom_alone_has_all_directions_and_covered_points_fade(protein):
    alone = _some_atoms(protein, [1])
    points = surface_points(alone)
    assert len(points.atom) == 12 and (points.weight == 1).all()
    assert np.allclose(points.pos - alone.atom_pos[0], (1.88 + PROBE) * points.normal, atol=1e-6)
    assert np.abs(points.normal.sum(0)).max() < 1e-9

    # another atom moves onto a point: its weight falls to 0 without a jump, and then it is gone
    direction = points.normal[0]
    weights = []
    for distance in np.arange(8.0, 4.0, -0.01):
        pair = _some_atoms(protein, [1, 4])
        pos = np.stack([alone.atom_pos[0], alone.atom_pos[0] + distance * direction])
        pair = replace(pair, atom_pos=pos.astype(np.float32))
        found = surface_points(pair)
        on_first = found.atom == 0
        nearest = (found.normal[on_first] @ direction) > 0.999
        weights.append(float(found.weight[on_first][nearest].sum()))
    assert weights[0] == 1 and weights[-1] == 0 and np.abs(np.diff(weights)).max() < 0.05


def _some_atoms(protein: Residues, rows: list[int]) -> Residues:
    """Return the protein with some atoms of its first residue alone."""
    return replace(
        protein,
        atom_pos=protein.atom_pos[rows],
        atom_name=protein.atom_name[rows],
        atom_element=protein.atom_element[rows],
        atom_residue=protein.atom_residue[rows],
    )


def test_points_turn_with_the_protein_and_do_not_depend_on_the_order_of_atoms(protein, points):
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(len(protein.atom_pos)), protein.atom_residue))
    rotation = Rotation.random(random_state=1).as_matrix()
    reflected = rotation @ np.diag([1.0, 1.0, -1.0])
    for matrix in (rotation, reflected):
        moved = replace(
            protein,
            atom_pos=protein.atom_pos[order].astype(np.float64) @ matrix.T + 50,
            atom_name=protein.atom_name[order],
            atom_element=protein.atom_element[order],
            backbone=protein.backbone.astype(np.float64) @ matrix.T + 50,
            pos=protein.pos.astype(np.float64) @ matrix.T + 50,
        )
        found = surface_points(moved)
        expected = points.pos @ matrix.T + 50
        distance = np.linalg.norm(found.pos[:, None] - expected, axis=2)
        nearest = distance.argmin(1)
        assert len(found.pos) == len(expected) == len(set(nearest.tolist()))
        assert distance.min(1).max() < 1e-9
        assert np.allclose(found.weight, points.weight[nearest], atol=1e-9)
        assert np.allclose(point_chemistry(moved, found.pos), point_chemistry(protein, points.pos)[nearest], atol=1e-6)
        shape = point_shape(protein, points)[nearest]
        assert np.allclose(point_shape(moved, found), shape, atol=5e-3)
        assert shape.std(0).min() > 1e-3


def test_chemistry_equals_a_loop_over_atoms(protein, points):
    chemistry = atom_chemistry(protein)
    found = point_chemistry(protein, points.pos)
    for m in range(0, len(points.pos), 25):
        distance = np.linalg.norm(protein.atom_pos.astype(np.float64) - points.pos[m], axis=1)
        for reach, columns in ((6.0, slice(0, 11)), (10.0, slice(11, 22))):
            weight = np.where(distance < reach, (1 - (distance / reach) ** 2) ** 2, 0)
            assert np.allclose(found[m, columns], weight @ chemistry, atol=1e-9)


def test_atoms_have_the_properties_of_their_groups(protein):
    chemistry = atom_chemistry(protein)
    column = {name: chemistry[:, k] for k, name in enumerate(CHEMISTRY)}
    letters = np.array(list(protein.sequence))
    assert column["positive"].sum() == (letters == "K").sum() + (letters == "R").sum()
    assert column["negative"].sum() == (letters == "D").sum() + (letters == "E").sum()
    assert column["aromatic"].sum() == 6 * np.isin(letters, ["F", "Y"]).sum() + 3 * (letters == "H").sum()
    elements = chemistry[:, [0, 1, 2, 3, 4]].sum(1)
    assert (elements == 1).all()  # each heavy atom is one of them
    donors_of_backbone = (letters != "P").sum()
    assert column["donor"][protein.atom_name == "N"].sum() == donors_of_backbone


def test_points_in_a_cavity_are_more_enclosed_than_those_on_a_bulge(protein, points):
    shape = dict(zip(SHAPE, point_shape(protein, points).T, strict=True))
    correlation = np.corrcoef(shape["atoms_10"], shape["enclosure_10"])[0, 1]
    assert correlation > 0.7
    in_cavity = shape["cavity_8"] > np.quantile(shape["cavity_8"], 0.9)
    assert shape["concavity_10"][in_cavity].mean() > shape["concavity_10"][~in_cavity].mean()
    assert shape["atoms_15"][in_cavity].mean() > shape["atoms_15"][~in_cavity].mean()


def test_a_residue_without_a_frame_buries_but_has_no_points(protein, points):
    backbone = protein.backbone.copy()
    backbone[10, 0] = np.nan
    incomplete = replace(protein, backbone=backbone)
    found = surface_points(incomplete)
    of_others = protein.atom_residue[points.atom] != 10
    assert np.array_equal(found.pos, points.pos[of_others])
    nothing = replace(protein, backbone=np.full_like(backbone, np.nan))
    assert len(surface_points(nothing).pos) == 0


def test_the_order_of_imports_does_not_matter():
    """A module of pockets has the name of its function, so the package has one or the other under this name."""
    imports = "import protgraph_plugins.pockets.cavity, protgraph_plugins.surface.points as points"
    subprocess.run([sys.executable, "-c", f"{imports}; assert callable(points.alpha_spheres)"], check=True)
