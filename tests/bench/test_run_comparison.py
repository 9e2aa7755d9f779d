"""Comparison of two finished runs: differences, corrected p-values, and refusal of other data."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.bench.run_comparison import compare_runs, differences_table
from protgraph.errors import DatasetError, OptionError
from tests.bench.bench_runs import write_run

SIZES = {f"p{i}": 60 + 10 * i for i in range(16)}


def test_a_better_model_is_found_and_an_equal_one_is_not(tmp_path):
    write_run(tmp_path / "a", {"same": 1.0, "grows": 0.5}, SIZES)
    write_run(tmp_path / "b", {"same": 1.0, "grows": 2.0}, SIZES)
    found = {(d.model_a, d.metric): d for d in compare_runs(tmp_path / "a", tmp_path / "b", resamples=200)}
    assert len(found) == 6 and all(d.seeds == 2 and d.proteins == 16 for d in found.values())
    for metric in ("auprc", "auroc", "mcc"):
        same, grows = found["same", metric], found["grows", metric]
        assert same.a == same.b and same.verdict == "no difference shown" and same.p_holm == 1.0
        assert grows.verdict == "B better" and grows.interval.low > 0 and grows.protein_difference > 0
        assert grows.p_value < grows.p_holm < 0.05
    reverse = {(d.model_a, d.metric): d for d in compare_runs(tmp_path / "b", tmp_path / "a", resamples=200)}
    assert reverse["grows", "auprc"].verdict == "A better"
    assert reverse["grows", "auprc"].p_value == found["grows", "auprc"].p_value
    assert differences_table(list(found.values())).count("\n") == 7


def test_only_common_seeds_are_compared(tmp_path):
    write_run(tmp_path / "a", {"one": 1.0}, SIZES, seeds=(0, 1, 2))
    rows = write_run(tmp_path / "b", {"other": 1.0}, SIZES, seeds=(1, 2, 3))
    found = compare_runs(tmp_path / "a", tmp_path / "b", resamples=20)  # a single model each
    assert {(d.model_a, d.model_b, d.seeds) for d in found} == {("one", "other", 2)}
    expected = np.mean([row.metrics["test"]["auprc"] for row in rows if row.seed in (1, 2)])
    assert found[0].b == pytest.approx(expected)
    write_run(tmp_path / "c", {"other": 1.0}, SIZES, seeds=(9,))
    with pytest.raises(OptionError, match=r"\[9\]"):
        compare_runs(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize(
    ("changes", "part"),
    [({"version": "2"}, "'1', B '2'"), ({"flipped": 3}, "labels"), ({"sizes": SIZES | {"extra": 50}}, "extra")],
)
def test_runs_on_other_data_are_refused(tmp_path, changes, part):
    write_run(tmp_path / "a", {"one": 1.0}, SIZES)
    write_run(tmp_path / "b", {"one": 1.0}, **{"sizes": SIZES, **changes})
    with pytest.raises(DatasetError, match=part):
        compare_runs(tmp_path / "a", tmp_path / "b")


def test_what_cannot_be_compared_is_named(tmp_path):
    write_run(tmp_path / "a", {"one": 1.0, "two": 1.0}, SIZES)
    write_run(tmp_path / "b", {"three": 1.0}, SIZES)
    with pytest.raises(OptionError, match="one, two; B has three"):
        compare_runs(tmp_path / "a", tmp_path / "b")
    assert compare_runs(tmp_path / "a", tmp_path / "b", models={"two": "three"}, resamples=20)[0].model_b == "three"
    with pytest.raises(OptionError, match="'four'"):
        compare_runs(tmp_path / "a", tmp_path / "b", models={"two": "four"})
    with pytest.raises(DatasetError, match="empty"):
        compare_runs(tmp_path / "a", tmp_path / "empty")
