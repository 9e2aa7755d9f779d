"""Tables: figures that another library and a person's arithmetic also get."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.summary_table import Spread, beats, compare_with_floors, csv_table, markdown_table, summarize

FLOORS = ("majority", "mlp")


def test_spread_equals_numpy() -> None:
    values = np.random.default_rng(0).normal(size=7)
    spread = Spread.of(values.tolist())
    assert spread.mean == pytest.approx(values.mean(), rel=1e-12)
    assert spread.sd == pytest.approx(values.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "text"), [([0.7124, 0.7124], "0.712 ± 0.000"), ([0.5], "0.500"), ([], "–"), ([math.nan, 0.25], "0.250")]
)
def test_spread_says_nothing_about_what_is_not_there(values: list[float], text: str) -> None:
    assert Spread.of(values).text() == text


def test_best_is_bold_whichever_way_is_better(rows: list[BenchRow]) -> None:
    table = markdown_table(summarize(rows), FLOORS)
    bold = [line.split("|")[1:3] for line in table.splitlines() if "| **" in line and "| two" in line]
    assert len(bold) == 2
    assert "accuracy ↑" in table
    assert "loss_like ↓" in table
    assert "| majority (floor) |" in table


def test_every_line_of_the_table_has_the_same_cells(rows: list[BenchRow]) -> None:
    failed = BenchRow.failed(BenchJob("broken", "classes", "small", 0), "no")
    for block in markdown_table(summarize([*rows, failed]), FLOORS).split("\n\n"):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_csv_holds_full_precision(rows: list[BenchRow]) -> None:
    read = list(csv.DictReader(io.StringIO(csv_table(summarize(rows), FLOORS))))
    line = next(r for r in read if r["task"] == "classes" and r["model"] == "one")
    scores = [row.score for row in rows if row.task == "classes" and row.model == "one"]
    assert float(line["test_accuracy_mean"]) == np.mean(scores)
    assert float(line["test_accuracy_sd"]) == pytest.approx(np.std(scores, ddof=1), rel=1e-12)
    assert line["floor"] == "0"
    assert line["test_loss_like_mean"] == ""


def test_verdict_names_models_that_do_not_beat_both_floors(rows: list[BenchRow]) -> None:
    good, bad = (s for s in summarize(rows) if s.task == "classes" and s.model in ("mlp", "one"))
    assert not beats(good, bad)
    assert "every model beats them" in compare_with_floors(summarize(rows), FLOORS)[0]
    worse = [
        replace(row, metrics={"test": {row.monitor: 0.45 if row.task == "classes" else 0.99}})
        if row.model == "one"
        else row
        for row in rows
    ]
    lines = compare_with_floors(summarize(worse), FLOORS)
    assert all("not beaten by one (" in line and "two (" not in line for line in lines)


def test_verdict_points_out_seed_noise(rows: list[BenchRow]) -> None:
    close = [
        replace(row, metrics={"test": {"accuracy": 0.5475 + 0.01 * row.seed}}) if row.model == "one" else row
        for row in rows
        if row.task == "classes"
    ]
    assert "Within seed noise of a floor: one" in compare_with_floors(summarize(close), FLOORS)[0]


def test_verdict_does_not_hide_a_floor_that_failed(rows: list[BenchRow]) -> None:
    some = [row for row in rows if row.task == "classes" and row.model != "mlp"]
    failed = BenchRow.failed(BenchJob("mlp", "classes", "small", 0), "no luck")
    assert compare_with_floors(summarize([*some, failed]), FLOORS)[0].endswith("every model beats them. No run finished of: mlp.")
    alone = [BenchRow.failed(BenchJob(model, "classes", "small", 0), "no luck") for model in ("one", "mlp")]
    assert compare_with_floors(summarize(alone), FLOORS) == ["**classes**: nothing to compare. No run finished of: one, mlp."]


def test_failed_runs_count_and_do_not_spoil_means(rows: list[BenchRow]) -> None:
    job = BenchJob("one", "classes", "small", 9)
    before = next(s for s in summarize(rows) if s.model == "one")
    after = next(s for s in summarize([*rows, BenchRow.failed(job, "no luck")]) if s.model == "one")
    assert (after.seeds, after.failed) == (3, 1)
    assert after.score == before.score
    assert "3 (1 failed)" in markdown_table([after])


def test_model_that_only_failed_has_an_empty_line() -> None:
    job = BenchJob("one", "classes", "small", 9)
    table = markdown_table(summarize([BenchRow.failed(job, "no luck")]))
    assert "| one | 0 (1 failed) | – |" in table
