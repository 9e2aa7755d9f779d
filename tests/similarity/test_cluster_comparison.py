"""Comparison of clusterings against scikit-learn and against counted pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from protgraph.similarity import compare_clusters


@pytest.mark.parametrize(("first", "second"), [(3, 3), (10, 4), (1, 5), (40, 40)])
def test_index_and_pairs_equal_those_counted_and_of_scikit_learn(first, second):
    rng = np.random.default_rng(first)
    a, b = rng.integers(first, size=40).tolist(), rng.integers(second, size=40).tolist()
    found = compare_clusters(a, b)
    assert found.adjusted_rand == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    pairs = [(a[i] == a[j], b[i] == b[j]) for i, j in combinations(range(40), 2)]
    assert found.together == pairs.count((True, True))
    assert found.first_only == pairs.count((True, False))
    assert found.second_only == pairs.count((False, True))


def test_equal_clusterings_with_other_names_have_index_1():
    found = compare_clusters(["a", "b", "a", "c"], [7, 8, 7, 9])
    assert (found.adjusted_rand, found.first_only, found.second_only) == (1, 0, 0)
    assert found.split_by_first == found.split_by_second == ()


def test_divided_clusters_are_listed_by_separated_pairs():
    first = ["x"] * 6 + ["y"] * 4 + ["z"]
    second = [0, 0, 0, 1, 1, 2, 3, 3, 3, 4, 4]
    found = compare_clusters(first, second)
    assert found.split_by_second == (("x", 6, (3, 2, 1)), ("y", 4, (3, 1)))
    assert found.split_by_first == ((4, 2, (1, 1)),)
    assert "cluster x of the first, 6 proteins, is divided: 3 + 2 + 1" in str(found)
