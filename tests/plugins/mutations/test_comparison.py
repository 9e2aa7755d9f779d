"""Tables of mutation effects: scores against scipy, identical rows for all methods, antisymmetry of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.mutations.comparison import MutationRows, antisymmetry, mutation_scores, mutation_table
from scipy.stats import pearsonr, spearmanr


@pytest.fixture
def splits() -> list[MutationRows]:
    rng = np.random.default_rng(0)
    value = np.round(rng.normal(size=60), 1)  # ties
    structure = np.repeat(["1abc", "2abc", "3abc"], [30, 25, 5])
    row = np.array([f"row {i}" for i in range(60)])
    predictions = {"good": value + rng.normal(size=60), "bad": rng.normal(size=60), "score": -3 * value}
    predictions["bad"][[3, 50]] = np.nan
    units = {"good": "kcal/mol", "bad": "kcal/mol", "score": ""}
    direct = MutationRows("set direct", structure, row, value, predictions, units)
    shuffle = rng.permutation(60)
    back = {name: (0.5 - p)[shuffle] for name, p in predictions.items()}
    names = np.array([f"row {i}, reverse" for i in shuffle])
    return [direct, MutationRows("set reverse", structure[shuffle], names, -value[shuffle], back, units)]


def test_scores_are_those_of_scipy(splits):
    rows = splits[0]
    mask = rows.common()
    assert mask.sum() == 58 and not mask[[3, 50]].any()
    scores, y, p = mutation_scores(rows, "good", mask), rows.value[mask], rows.predictions["good"][mask]
    assert scores.pearson == pytest.approx(pearsonr(p, y)[0]) and scores.spearman == pytest.approx(spearmanr(p, y)[0])
    assert scores.rmse == pytest.approx(np.sqrt(((p - y) ** 2).mean()))
    own = [spearmanr(p[rows.structure[mask] == s], y[rows.structure[mask] == s])[0] for s in ("1abc", "2abc")]
    assert scores.per_structure == pytest.approx(np.mean(own))  # 3abc has five rows
    assert scores.low < scores.pearson < scores.high and (scores.rows, scores.structures) == (58, 3)
    assert np.isnan(mutation_scores(rows, "score", mask).rmse)


def test_antisymmetry_joins_pairs_by_the_row_of_the_source(splits):
    r, bias, pairs = antisymmetry(*splits, "good")
    assert (r, bias, pairs) == (pytest.approx(-1), pytest.approx(0.25), 60)
    assert antisymmetry(*splits, "bad")[2] == 58


def test_a_method_without_the_reverse_has_no_antisymmetry(splits):
    direct, reverse = splits
    del reverse.predictions["bad"]
    r, bias, pairs = antisymmetry(direct, reverse, "bad")
    assert np.isnan(r) and np.isnan(bias) and pairs == 0
    line = next(line for line in mutation_table(splits).splitlines() if line.startswith("| bad"))
    assert line.endswith("| – | – |")


def test_the_main_table_has_the_methods_of_the_given_coverage(splits):
    lines = mutation_table(splits, coverage=1.0).splitlines()
    assert lines[0] == "### set direct: 60 of 60 rows, 3 structures, 2 with ten rows or more"
    assert [line.split("|")[1].strip() for line in lines[2:6]] == ["method", "---", "good", "score"]
    assert "### set direct: 58 of 60 rows, 3 structures, 2 with ten rows or more" in lines


def test_the_table_has_one_row_per_method_and_the_best_first(splits):
    lines = mutation_table(splits).splitlines()
    assert lines[0] == "### set direct: 58 of 60 rows, 3 structures, 2 with ten rows or more"
    methods = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert methods[:4] == ["method", "good", "bad", "score"]
    assert "-1.000" in lines[4] and lines[4].count("|") == 8


def test_the_interval_per_structure_has_the_mean_of_few_structures(splits):
    rows = splits[0]
    scores = mutation_scores(rows, "good", rows.common())
    low, high = sorted(scores.within.values())
    assert scores.within.keys() == {"1abc", "2abc"} and scores.per_structure == pytest.approx((low + high) / 2)
    assert (scores.within_low, scores.within_high) == (pytest.approx(low), pytest.approx(high))


def test_methods_with_fewer_rows_have_a_table_of_their_own(splits):
    rows = splits[0]
    rows.predictions["few"] = np.where(np.arange(60) < 40, rows.value, np.nan)
    rows.units["few"] = "kcal/mol"
    table = mutation_table([rows])
    first, second = table.split("On the rows that few predict too:")
    assert "| few" not in first and "### set direct: 58 of 60 rows" in first
    assert "### set direct: 39 of 60 rows" in second and "| few | 1.000" in second and "| good" in second


def test_values_without_a_common_unit_have_a_correlation_per_structure(splits):
    from dataclasses import replace

    lines = mutation_table([replace(splits[0], unit="")]).splitlines()
    assert lines[2] == "| Spearman | mean [95 %] | 1abc | 2abc |"
    assert lines[4].startswith("| good") and lines[-1].startswith("| score | -1.000 [-1.000, -1.000] | -1.000 |")
