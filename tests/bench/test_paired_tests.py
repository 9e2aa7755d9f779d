"""Permutation test, Holm's correction and critical difference against closed forms and published tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from protgraph.bench.paired_tests import compare_ranks, holm, sign_permutation_test


def test_few_proteins_give_the_p_value_of_all_sign_patterns():
    difference = np.random.default_rng(0).normal(0.3, 1, 10)
    means = [abs(np.mean(np.array(signs) * difference)) for signs in product((-1, 1), repeat=10)]
    expected = np.mean(np.array(means) >= abs(difference.mean()) - 1e-12)
    assert sign_permutation_test(difference) == pytest.approx(expected, abs=1e-12)


def test_many_proteins_give_about_the_p_value_of_the_t_test_and_never_zero():
    from scipy.stats import ttest_1samp

    difference = np.random.default_rng(1).normal(0.2, 1, 120)
    assert sign_permutation_test(difference) == pytest.approx(ttest_1samp(difference, 0).pvalue, abs=0.01)
    assert sign_permutation_test(difference + 2) == pytest.approx(2 / 10_000)  # the least p-value of 9,999 patterns


def test_undefined_proteins_are_left_out_and_equal_models_do_not_differ():
    assert sign_permutation_test(np.array([1.0, np.nan, 2.0, 3.0])) == 0.25
    assert sign_permutation_test(np.zeros(9)) == 1.0
    assert math.isnan(sign_permutation_test(np.array([np.nan])))


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
