"""Alpha spheres: against every four atoms, against walls of known volume, and under motions of the protein."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from protgraph_plugins.pockets.spheres import alpha_spheres
from scipy.spatial.transform import Rotation

EVERY_RADIUS = {"opening": (0.0, 1e-9), "closing": (1e6, 2e6)}


def test_spheres_are_those_through_four_atoms_without_another_inside():
    atoms = np.random.default_rng(0).uniform(0, 10, (13, 3))
    expected = []
    for four in combinations(range(13), 4):
        a, *others = atoms[list(four)]
        edges = np.array(others) - a
        center = a + np.linalg.solve(2 * edges, (edges**2).sum(1))
        radius = np.linalg.norm(center - a)
        outside = [np.linalg.norm(atom - center) >= radius - 1e-9 for atom in atoms]
        if all(outside):
            expected.append([*center, radius, abs(np.linalg.det(edges)) / 6])
    spheres = alpha_spheres(atoms, **EVERY_RADIUS, outside=1e6)
    computed = np.column_stack([spheres.center, spheres.radius, spheres.volume])
    assert len(computed) > 20
    assert np.sort(computed, axis=0) == pytest.approx(np.sort(expected, axis=0), rel=1e-8)


def _block(*, open_top: bool) -> np.ndarray:
    """Return a cube of 20 Å of atoms 2 Å apart around an empty cube of 8 Å, closed or open upwards."""
    axis = np.arange(-10, 11, 2.0)
    atoms = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    below_top = 10 if open_top else 4
    x, y, z = atoms.T
    is_empty = (np.abs(x) < 4) & (np.abs(y) < 4) & (z > -4) & (z < below_top + (1 if open_top else 0))
    return atoms[~is_empty]


# Cells of 8 Å³ along its edges still lie on spheres between neighbors, of 1.73 Å: half of each of the 2 between the
# ends of an edge, and all but a corner (8 / 6) of each of the 8 in the corners.
CLOSED = 8**3 - 12 * 2 * 4 - 8 * (8 - 8 / 6)


def test_the_volume_of_a_closed_room_is_exact():
    spheres = alpha_spheres(_block(open_top=False), opening=(1.8, 1.9), closing=(8.0, 9.0))
    assert spheres.volume.sum() == pytest.approx(CLOSED, rel=1e-9)
    assert np.abs(spheres.center).max() < 4


@pytest.mark.parametrize("open_top", [False, True])
def test_depth_is_the_distance_to_the_faces_of_the_block(open_top):
    spheres = alpha_spheres(_block(open_top=open_top), opening=(1.8, 1.9), closing=(8.0, 9.0))
    assert spheres.depth == pytest.approx((10 - np.abs(spheres.center)).min(1), abs=1e-9)
    assert spheres.depth.max() == pytest.approx(10)


def test_a_wide_opening_is_outside_and_a_narrow_one_is_not():
    block = _block(open_top=True)
    narrow = alpha_spheres(block, opening=(1.8, 1.9), closing=(8.0, 9.0), outside=9.0)
    wide = alpha_spheres(block, opening=(1.8, 1.9), closing=(8.0, 9.0), outside=3.0)
    assert narrow.volume.sum() > CLOSED  # it goes on to the face of the block
    assert wide.volume.sum() < 0.2 * narrow.volume.sum()


def test_enclosure_is_one_in_the_middle_of_a_room_and_less_at_its_walls():
    spheres = alpha_spheres(_block(open_top=False), opening=(1.8, 1.9), closing=(8.0, 9.0))
    from_middle = np.linalg.norm(spheres.center, axis=1)
    assert spheres.enclosure[from_middle < 1e-9] == pytest.approx(1.0)
    assert spheres.enclosure[from_middle > 0.5].max() < 1 - 1e-3


@pytest.fixture(scope="module")
def atoms(proteins) -> np.ndarray:
    return max(proteins, key=len).atom_pos.astype(np.float64)


def _sorted(spheres):
    columns = np.column_stack([spheres.radius, spheres.volume, spheres.depth, spheres.enclosure])
    return columns[np.lexsort(columns.T)]


def test_rotation_reflection_translation_and_order_change_nothing(atoms):
    reference = alpha_spheres(atoms)
    assert len(reference.radius) > 50
    rng = np.random.default_rng(1)
    moved = rng.permutation(atoms) @ Rotation.random(random_state=2).as_matrix().T * [1, 1, -1] + [100, -200, 50]
    assert np.abs(_sorted(alpha_spheres(moved)) - _sorted(reference)).max() < 1e-6


def test_repeated_atoms_count_once(atoms):
    twice = np.concatenate([atoms, atoms[::3]])
    assert np.array_equal(alpha_spheres(twice).center, alpha_spheres(atoms).center)


@pytest.mark.parametrize(
    "atoms",
    [np.zeros((0, 3)), np.ones((9, 3)), np.eye(3), np.random.default_rng(0).uniform(0, 9, (30, 3)) * [1, 1, 0]],
    ids=["none", "one", "three", "plane"],
)
def test_atoms_that_span_no_volume_have_no_spheres(atoms):
    spheres = alpha_spheres(atoms)
    assert spheres.center.shape == (0, 3)
    assert spheres.depth.shape == (0,)
