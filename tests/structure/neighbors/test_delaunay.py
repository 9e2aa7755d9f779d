"""Delaunay pairs against scipy and the empty-sphere definition, also for coplanar and collinear points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import Delaunay

from protgraph.structure import clean, load_structure
from protgraph.structure.neighbors.delaunay import delaunay


def as_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return set(map(tuple, pairs.T.tolist()))


def test_real_proteins_equal_scipy(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::26]:
        pos = clean(load_structure(path)).pos.astype(np.float64)
        simplices = Delaunay(pos - pos.mean(0)).simplices
        expected = {tuple(sorted(pair)) for row in simplices.tolist() for pair in combinations(row, 2)}
        assert as_set(delaunay(pos)) == expected, path.name


def test_pairs_are_those_with_an_empty_sphere():
    pos = np.random.default_rng(0).normal(size=(14, 3))
    expected = set()
    for four in combinations(range(14), 4):  # the sphere through four points, if it is empty
        a = pos[list(four)]
        center = np.linalg.solve(2 * (a[1:] - a[0]), (a[1:] ** 2).sum(1) - (a[0] ** 2).sum())
        if (((pos - center) ** 2).sum(1) > ((a[0] - center) ** 2).sum() - 1e-9).all():
            expected |= set(combinations(four, 2))
    assert as_set(delaunay(pos)) == expected


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_few_points_are_all_joined(n):
    assert delaunay(np.random.default_rng(1).normal(size=(n, 3))).shape == (2, n * (n - 1) // 2)


def test_coplanar_points_are_triangulated_in_their_plane():
    flat = np.random.default_rng(2).normal(size=(20, 2))
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    expected = {tuple(sorted(p)) for row in Delaunay(flat).simplices.tolist() for p in combinations(row, 2)}
    assert as_set(delaunay(np.pad(flat, ((0, 0), (0, 1))) @ turn + 5)) == expected


def test_collinear_points_are_joined_in_order():
    along = np.array([3.0, 0.0, 1.0, 7.0])[:, None] * np.array([1.0, 2.0, 3.0])
    assert as_set(delaunay(along)) == {(1, 2), (0, 2), (0, 3)}


def test_coincident_points_are_joined_to_the_lowest_index():
    assert as_set(delaunay(np.ones((4, 3)))) == {(0, 1), (0, 2), (0, 3)}
    pos = np.random.default_rng(4).normal(size=(9, 3))
    pos[7] = pos[2]
    assert {pair for pair in as_set(delaunay(pos)) if 7 in pair} == {(2, 7)}
