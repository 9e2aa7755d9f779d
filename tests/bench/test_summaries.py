"""Summary tables: means and standard deviations equal to NumPy, and the comparison with the baselines."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from protgraph.bench.paired_tests import holm, sign_permutation_tests
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.summaries import Spread, compare_with_baselines, summarize
from protgraph.bench.tables import confusion_table, csv_table, markdown_table
from protgraph.structure import ALPHABET

BASELINES = ("majority", "mlp")


def test_spread_equals_numpy() -> None:
    values = np.random.default_rng(0).normal(size=7)
    spread = Spread.of(values.tolist())
    assert spread.mean == pytest.approx(values.mean(), rel=1e-12)
    assert spread.sd == pytest.approx(values.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "text"), [([0.7124, 0.7124], "0.712 ± 0.000"), ([0.5], "0.500"), ([], "–"), ([math.nan, 0.25], "0.250")]
)
def test_spread_ignores_missing_values(values: list[float], text: str) -> None:
    assert Spread.of(values).text() == text
    assert Spread.of([-0.0001, 0.0]).text() == "0.000 ± 0.000"


def test_the_best_mean_is_bold_for_both_directions(rows: list[BenchRow]) -> None:
    table = markdown_table(summarize(rows), BASELINES)
    bold = [line.split("|")[1:3] for line in table.splitlines() if "| **" in line and "| two" in line]
    assert len(bold) == 2
    assert "accuracy ↑" in table
    assert "loss_like ↓" in table
    assert "| majority (baseline) |" in table


def test_all_lines_of_a_table_have_the_same_number_of_cells(rows: list[BenchRow]) -> None:
    failed = BenchRow.failed(BenchJob("broken", "classes", "small", 0), "ValueError: x")
    for block in markdown_table(summarize([*rows, failed]), BASELINES).split("\n\n"):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_csv_holds_full_precision(rows: list[BenchRow]) -> None:
    read = list(csv.DictReader(io.StringIO(csv_table(summarize(rows), BASELINES))))
    line = next(r for r in read if r["task"] == "classes" and r["model"] == "one")
    scores = [row.score for row in rows if row.task == "classes" and row.model == "one"]
    assert float(line["test_accuracy_mean"]) == np.mean(scores)
    assert float(line["test_accuracy_sd"]) == pytest.approx(np.std(scores, ddof=1), rel=1e-12)
    assert line["baseline"] == "0"
    assert line["test_loss_like_mean"] == ""


def test_without_scores_of_proteins_no_model_beats_a_baseline(rows: list[BenchRow]) -> None:
    (line, _) = compare_with_baselines(summarize(rows), BASELINES)
    assert "beats" not in line and "by the mean score alone, without a test: one (" in line


def test_models_that_do_not_beat_both_baselines_are_named(rows: list[BenchRow]) -> None:
    worse = [
        replace(row, metrics={"test": {row.monitor: 0.45 if row.task == "classes" else 0.99}})
        if row.model == "one"
        else row
        for row in rows
    ]
    lines = compare_with_baselines(summarize(worse), BASELINES)
    assert all("not shown to be beaten by one (" in line for line in lines)
    assert all("two (" not in line.partition(" Better by the mean")[0] for line in lines)


def paired(rows: list[BenchRow], spread: float, proteins: int = 40) -> list[BenchRow]:
    """Return the rows of the task ``classes`` with scores of the same proteins, around the score of each row."""
    common = np.random.default_rng(0).normal(size=proteins) * 0.2  # of the proteins, for all models
    random = np.random.default_rng(1)
    made = []
    for row in rows:
        if row.task == "classes":
            scores = tuple(row.score + common + spread * random.normal(size=proteins))
            made.append(replace(row, protein_scores=scores, test_proteins=proteins, test_set="x"))
    return made


def test_a_model_beats_another_if_the_adjusted_test_over_proteins_is_below_5_percent(rows: list[BenchRow]) -> None:
    for spread, expected in ((0.001, True), (1.0, False)):
        summaries = summarize(paired(rows, spread))
        scores = np.array([s.protein_scores for s in summaries])
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        differences = np.array([scores[a] - scores[b] for a, b in pairs])
        adjusted = dict(zip(pairs, holm(sign_permutation_tests(differences)), strict=True))
        names = [s.model for s in summaries]
        majority, mlp, one = (names.index(name) for name in ("majority", "mlp", "one"))
        assert (max(adjusted[majority, one], adjusted[mlp, one]) < 0.05) is expected
        (line,) = compare_with_baselines(summaries, BASELINES)
        assert ("every model beats them" in line) is expected
        assert "of 40 proteins" in line


def test_models_that_beat_the_baselines_are_named_beside_those_that_do_not(rows: list[BenchRow]) -> None:
    scored = paired(rows, 0.001)
    low = tuple(np.random.default_rng(2).normal(size=40))
    mixed = [replace(row, protein_scores=low) if row.model == "two" else row for row in scored]
    (line,) = compare_with_baselines(summarize(mixed), BASELINES)
    beaten, other = line.split("; not shown to be beaten by ")
    assert "beaten by one (" in beaten and other.startswith("two (")


def test_a_lower_value_is_better_for_an_error(rows: list[BenchRow]) -> None:
    errors = [replace(row, modes=row.modes | {row.monitor: "min"}) for row in paired(rows, 0.001)]
    (line,) = compare_with_baselines(summarize(errors), BASELINES)
    assert "not shown to be beaten by one (" in line and "beats them" not in line


def test_different_test_proteins_are_compared_by_the_mean(rows: list[BenchRow]) -> None:
    scored = paired(rows, 1.0)
    other = [replace(row, test_set="y") if row.model == "one" else row for row in scored]
    (line,) = compare_with_baselines(summarize(other), BASELINES)
    assert "beaten by one" not in line and "by the mean score alone, without a test: one (" in line


def test_one_test_protein_is_too_few_to_conclude_from(rows: list[BenchRow]) -> None:
    one = paired(rows, 0.001, proteins=1)
    (line,) = compare_with_baselines(summarize(one), BASELINES)
    assert "1 protein" in line and line.endswith("too few test proteins to compare.")


def test_another_metric_in_which_a_baseline_is_better_is_named(rows: list[BenchRow]) -> None:
    others = {"majority": 0.596, "mlp": 0.3, "one": 0.444, "two": 0.7}
    scored = [
        replace(row, metrics={"test": {row.monitor: row.score, "other": others[row.model]}})
        for row in paired(rows, 0.001)
    ]
    (line,) = compare_with_baselines(summarize(scored), BASELINES)
    assert "every model beats them" in line and "the mean of a baseline is better: one (other)." in line


def test_models_within_seed_noise_are_named(rows: list[BenchRow]) -> None:
    close = [
        replace(row, metrics={"test": {"accuracy": 0.5475 + 0.01 * row.seed}}) if row.model == "one" else row
        for row in rows
        if row.task == "classes"
    ]
    assert "Within seed noise of a baseline: one" in compare_with_baselines(summarize(close), BASELINES)[0]


def test_a_failed_baseline_is_named(rows: list[BenchRow]) -> None:
    some = [row for row in rows if row.task == "classes" and row.model != "mlp"]
    failed = BenchRow.failed(BenchJob("mlp", "classes", "small", 0), "ValueError: x")
    assert "No run finished of: mlp." in compare_with_baselines(summarize([*some, failed]), BASELINES)[0]
    alone = [BenchRow.failed(BenchJob(model, "classes", "small", 0), "ValueError: x") for model in ("one", "mlp")]
    (line,) = compare_with_baselines(summarize(alone), BASELINES)
    assert "classes" in line and "No run finished of: one, mlp." in line


def test_failed_runs_are_counted_and_not_averaged(rows: list[BenchRow]) -> None:
    job = BenchJob("one", "classes", "small", 9)
    before = next(s for s in summarize(rows) if s.model == "one")
    after = next(s for s in summarize([*rows, BenchRow.failed(job, "ValueError: x")]) if s.model == "one")
    assert (after.seeds, after.failed) == (3, 1)
    assert after.score == before.score
    assert "3 (1 failed)" in markdown_table([after])


def test_a_model_without_a_finished_run_has_empty_cells() -> None:
    job = BenchJob("one", "classes", "small", 9)
    table = markdown_table(summarize([BenchRow.failed(job, "ValueError: x")]))
    assert "| one | 0 (1 failed) | – |" in table


def test_an_undefined_baseline_is_a_dash_and_is_not_compared(rows):
    rows = [row for row in rows if row.task == "classes"]
    undefined = [replace(row, metrics={"val": {"accuracy": math.nan}, "test": {"accuracy": math.nan, "other": 0.5}})
                 if row.model == "majority" else row for row in rows]  # fmt: skip
    summaries = summarize(undefined)
    line = next(line for line in markdown_table(summaries, ["majority"]).splitlines() if "majority" in line)
    assert line.split("|")[2].strip() == "–"
    (text,) = compare_with_baselines(summaries, ["majority"])
    assert "accuracy is undefined, not compared: majority" in text
    (text,) = compare_with_baselines(summaries, ["majority", "mlp"])
    assert "baselines mlp" in text and "accuracy is undefined, not compared: majority" in text
    assert "nan" not in csv_table(summaries)


def test_the_confusion_table_has_recovery_and_the_most_frequent_confusion():
    counts = np.zeros((20, 20), int)
    ala, leu, ile = (ALPHABET.index(letter) for letter in "ALI")
    counts[leu, leu], counts[leu, ile], counts[ala, ala] = 6, 2, 1
    table = confusion_table(counts).markdown()
    assert "| L | 8 | 0.750 | I (0.25) |" in table and "| A | 1 | 1.000 |  |" in table
