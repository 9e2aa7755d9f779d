"""Delaunay pairs against scipy and the empty-sphere definition; random neighbors: pairs, odds, reproducibility."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import Delaunay

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.neighbors.long_range import delaunay, random_neighbors


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


# --- random neighbors ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "10sb.bcif"))


def test_neighbors_are_distinct_and_far_along_the_chain(residues):
    source, target = random_neighbors(residues, 8, separation=6, exponent=3.0, seed=0)
    chain, at = residues.chain_number, residues.seq_pos
    assert ((chain[source] != chain[target]) | (abs(at[source] - at[target]) >= 6)).all()
    assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == len(source) == 8 * len(residues)


def test_all_allowed_neighbors_are_returned_if_fewer_than_k(residues):
    short = residues.select(np.arange(len(residues)) < 10)
    source, target = random_neighbors(short, 50, separation=4, exponent=0.0, seed=1)
    expected = {(j, i) for i in range(10) for j in range(10) if abs(short.seq_pos[i] - short.seq_pos[j]) >= 4}
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == expected


def test_the_sample_depends_on_seed_and_identities_only(residues):
    drawn = [random_neighbors(residues, 8, separation=6, exponent=3.0, seed=s) for s in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert len(set(map(tuple, drawn[0].T)) & set(map(tuple, drawn[2].T))) < 0.7 * drawn[0].shape[1]
    moved = replace(residues, pos=residues.pos + 500)
    assert np.array_equal(random_neighbors(moved, 8, separation=6, exponent=0.0, seed=0),
                          random_neighbors(residues, 8, separation=6, exponent=0.0, seed=0))  # fmt: skip


@pytest.mark.slow
def test_the_first_neighbor_has_the_defined_probabilities(residues):
    some = residues.select(np.arange(len(residues)) < 8)
    pos, draws = some.pos.astype(np.float64), 4000
    count = np.zeros(8)
    for seed in range(draws):
        source, target = random_neighbors(some, 1, separation=1, exponent=3.0, seed=seed)
        count[source[target == 3]] += 1
    d = np.linalg.norm(pos - pos[3], axis=1)
    p = np.where(d > 0, np.maximum(d, 1e-9) ** -3.0, 0)
    p /= p.sum()
    assert (abs(count - draws * p) < 4.5 * np.sqrt(draws * p * (1 - p)) + 1e-9).all()
