"""Estimate of the remaining time, and the lines in the terminal."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from protgraph.bench.progress import ProgressBar, time_left
from protgraph.bench.rows import BenchJob, BenchRow


def job(model: str, task: str = "t", seed: int = 0) -> BenchJob:
    return BenchJob(model, task, "d", seed)


def row(model: str, task: str = "t", *, seconds: float, error: str = "") -> BenchRow:
    return BenchRow(job(model, task).key, model, task, "d", 0, seconds=seconds, error=error)


def test_the_estimate_is_nan_before_the_first_row() -> None:
    assert math.isnan(time_left([job("a")], [], 2))


@pytest.mark.parametrize(
    ("left", "workers", "expected"),
    [
        ([job("a", seed=1)], 1, 10.0),  # the same model and task
        ([job("a", "u")], 1, 10.0),  # the same model, another task
        ([job("c")], 1, 20.0),  # another model: mean of all
        ([job("a", seed=1), job("b", seed=1)], 1, 40.0),
        ([job("a", seed=1), job("b", seed=1)], 2, 20.0),
        ([job("a", seed=1)], 8, 10.0),  # one job cannot be shared
        ([], 2, 0.0),
    ],
)
def test_the_estimate_uses_runs_of_the_same_model_and_task(left: list[BenchJob], workers: int, expected: float) -> None:
    known = [row("a", seconds=10.0), row("b", seconds=30.0), row("c", seconds=1.0, error="ValueError: x")]
    assert time_left(left, known, workers) == pytest.approx(expected)


def test_lines_show_scores_failures_and_time_left(rows: list[BenchRow]) -> None:
    text = io.StringIO()
    bar = ProgressBar(Console(file=text, width=120, force_terminal=False))
    jobs = [job("a"), job("b")]
    bar.start(jobs, [], 2)
    metrics = {"val": {"accuracy": 0.75}, "test": {"accuracy": 0.625}}
    bar.add(replace(row("a", seconds=130.0), metrics=metrics, monitor="accuracy"))
    bar.add(BenchRow.failed(jobs[1], "ValueError: shape [red] :A: of x\nsecond line"))
    bar.stop()
    shown = text.getvalue()
    assert "2 runs: 0 finished before, 2 to do; workers: 2" in shown
    assert "accuracy 0.625 (val 0.750)  2 min 10 s  2 min 10 s left" in shown
    assert "failed: ValueError: shape [red] :A: of x" in shown
    assert "second line" not in shown
