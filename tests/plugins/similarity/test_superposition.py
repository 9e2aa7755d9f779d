"""Superposition against scipy, closed forms, and input that cannot be superposed."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.similarity import superpose, superposed_rmsd
from scipy.spatial.transform import Rotation

from protgraph.errors import OptionError


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(scale=10, size=(30, 3))


def test_a_rigid_transform_is_found_again(points):
    rotation, shift = Rotation.random(rng=1).as_matrix(), np.array([100.0, -20, 3])
    found = superpose(points, points @ rotation.T + shift)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-12)
    np.testing.assert_allclose(found.translation, shift, atol=1e-11)


def test_rotation_and_rmsd_are_those_of_scipy(points):
    other = points + np.random.default_rng(2).normal(scale=4, size=points.shape)
    a, b = points - points.mean(0), other - other.mean(0)
    expected, rssd = Rotation.align_vectors(b, a)
    np.testing.assert_allclose(superpose(points, other).rotation, expected.as_matrix(), atol=1e-9)
    assert superposed_rmsd(points, other) == pytest.approx(rssd / np.sqrt(len(points)), rel=1e-12)


def test_a_mirror_image_is_rotated_not_reflected(points):
    mirrored = points * [1, 1, -1]
    assert np.linalg.det(superpose(points, mirrored).rotation) == pytest.approx(1)
    assert superposed_rmsd(points, mirrored) > 1


def test_two_pairs_differ_by_half_the_difference_of_their_distances():
    assert superposed_rmsd(np.array([[0.0, 0, 0], [3, 0, 0]]), np.array([[0.0, 5, 0], [0, 0, 0]])) == pytest.approx(1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros((3, 3)), np.zeros((2, 3))),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.zeros((3, 2)), np.zeros((3, 2))),
        (np.array([[np.nan, 0, 0]]), np.zeros((1, 3))),
    ],
)
def test_points_that_cannot_be_superposed_are_refused(first, second):
    with pytest.raises(OptionError):
        superpose(first, second)
