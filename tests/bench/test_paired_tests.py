"""Permutation test, Holm's correction and critical difference against closed forms and published tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from protgraph.bench.paired_tests import compare_ranks, holm, sign_permutation_tests


def test_few_proteins_give_the_p_value_of_all_sign_patterns():
    differences = np.random.default_rng(0).normal(0.3, 1, (3, 10))
    signs = np.array(list(product((-1, 1), repeat=10)))
    for difference, p in zip(differences, sign_permutation_tests(differences), strict=True):
        expected = np.mean(abs((signs * difference).mean(1)) >= abs(difference.mean()) - 1e-12)
        assert p == pytest.approx(expected, abs=1e-12)


def test_many_proteins_give_about_the_p_value_of_the_t_test_and_never_zero():
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(1).normal(0.2, 1, (4, 120))
    expected = ttest_1samp(differences, 0, axis=1).pvalue
    noise = 2 * np.sqrt(expected * (1 - expected) / 9_999)  # standard error of twice the smaller tail
    assert (abs(sign_permutation_tests(differences) - expected) < 4 * noise + 0.002).all()
    assert min(sign_permutation_tests(differences + 2)) == pytest.approx(2 / 10_000)  # the least of 9,999 patterns


def test_p_values_do_not_depend_on_the_other_rows():
    differences = np.random.default_rng(2).normal(0.1, 1, (5, 40))
    differences[1, 3] = np.nan
    together = sign_permutation_tests(differences)
    assert together == [sign_permutation_tests(row[None])[0] for row in differences]
    assert together[1] == sign_permutation_tests(np.delete(differences[1:2], 3, axis=1))[0]


def test_undefined_proteins_are_left_out_and_equal_models_do_not_differ():
    nan = np.nan
    rows = np.array([[1.0, nan, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], [nan, nan, nan, nan], [2.0, nan, nan, nan]])
    p = sign_permutation_tests(rows)
    assert p[:2] == [0.25, 1.0] and math.isnan(p[2]) and p[3] == 1.0
    assert sign_permutation_tests(np.empty((0, 4))) == []


def test_holm_is_the_step_down_method():
    p = [0.01, 0.02, 0.03, 0.04, np.nan, 0.5]
    assert holm(p)[:4] == pytest.approx([0.05, 0.08, 0.09, 0.09])  # 5·0.01, 4·0.02, 3·0.03, max(0.09, 2·0.04)
    assert math.isnan(holm(p)[4]) and holm(p)[5] == 0.5
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(("models", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)])
def test_critical_differences_are_those_of_demsar_table_5(models, q):
    values = np.random.default_rng(models).normal(size=(models, 30))
    ranks = compare_ranks([str(i) for i in range(models)], values)
    assert ranks.critical_difference == pytest.approx(q * math.sqrt(models * (models + 1) / (6 * 30)), abs=2e-3)
    assert sum(ranks.ranks) == pytest.approx(models * (models + 1) / 2)


def test_ranks_follow_the_better_direction_and_ties_share_a_rank():
    values = np.array([[0.9, 0.8, 0.7, np.nan], [0.5, 0.5, 0.5, 0.1], [0.5, 0.5, 0.5, 0.2]])
    assert compare_ranks("abc", values).ranks == (1.0, 2.5, 2.5)
    assert compare_ranks("abc", values, mode="min").ranks == (3.0, 1.5, 1.5)
    assert compare_ranks("abc", values).proteins == 3
    assert compare_ranks("ab", values[:2]) is None


def test_groups_are_models_within_the_critical_difference():
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(m, 0.1, 100) for m in (3.0, 3.0, 0.0)])
    assert [set(group) for group in compare_ranks("abc", values).groups()] == [{"a", "b"}]
