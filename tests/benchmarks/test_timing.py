"""Timing: medians and ratios of functions with known run times."""

from __future__ import annotations

import time

import pytest

from benchmarks.measurements import MEASUREMENTS, measure
from benchmarks.timing import interleave
from protgraph.errors import UnknownNameError


class Clock:
    """Clock that runs on ``wait`` only."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


def test_median_and_ratio_of_known_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("benchmarks.timing.time", clock)
    functions = {"one": lambda: clock.wait(0.004), "three": lambda: clock.wait(0.012)}
    one, three = interleave(functions, reference="one", seconds=0.1)
    assert (one.name, one.ratio) == ("one", 1.0) and one.median_ms == pytest.approx(4)
    assert three.median_ms == pytest.approx(12) and three.ratio == pytest.approx(3)
    assert clock.seconds == pytest.approx(0.016 * 8)  # a warm-up, and rounds of 16 ms up to 100 ms


def test_interleave_measures_the_time_of_this_machine() -> None:
    one, three = interleave(
        {"one": lambda: time.sleep(0.004), "three": lambda: time.sleep(0.012)}, reference="one", seconds=0
    )
    assert one.median_ms >= 4 and three.median_ms >= 12


def test_every_function_runs_equally_often_and_first_in_turn() -> None:
    order: list[str] = []
    interleave({name: lambda name=name: order.append(name) for name in "abc"}, reference="a", seconds=0)
    assert [order.count(name) for name in "abc"] == [6, 6, 6]  # a warm-up and 5 rounds
    rounds = ["".join(order[i : i + 3]) for i in range(3, 18, 3)]
    assert rounds == ["abc", "bca", "cab", "abc", "bca"]


def test_warm_functions_run_only_the_minimum_number_of_rounds() -> None:
    order: list[str] = []
    ways = {name: lambda name=name: order.append(name) for name in "ab"}
    interleave(ways, reference="a", seconds=0, rounds=3, warm=True)
    assert "".join(order) == "abbaab"


def test_an_unknown_measurement_lists_all_names() -> None:
    with pytest.raises(UnknownNameError, match="'edge'.*'edges'") as caught:
        measure("edge")
    assert all(name in str(caught.value) for name in MEASUREMENTS)
