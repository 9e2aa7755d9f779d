"""Timing: medians and ratios of functions with known run times."""

from __future__ import annotations

import time

import pytest

from benchmarks.measurements import MEASUREMENTS, measure
from benchmarks.timing import interleave, interleave_inputs
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
    assert (one.name, one.ratio) == ("one", 1.0) and one.ms == pytest.approx(4)
    assert three.ms == pytest.approx(12) and three.ratio == pytest.approx(3)
    assert clock.seconds == pytest.approx(0.016 * 8)  # a warm-up, and rounds of 16 ms up to 100 ms


def test_interleave_measures_the_time_of_this_machine() -> None:
    one, three = interleave(
        {"one": lambda: time.sleep(0.004), "three": lambda: time.sleep(0.012)}, reference="one", seconds=0
    )
    assert one.ms >= 4 and three.ms >= 12


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


@pytest.mark.slow
def test_least_times_of_inputs_do_not_depend_on_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two inputs of 1 and 3 ms, four times that for ``slow``; two of three calls take up to five times as long."""
    clock, calls = Clock(), {"fast": 0, "slow": 0}
    monkeypatch.setattr("benchmarks.timing.time", clock)

    def run(name: str, factor: int, seconds: float) -> None:
        calls[name] += 1
        clock.wait(factor * seconds * (1 if calls[name] % 3 == 0 else 1 + calls[name] % 5))

    ways = {"fast": lambda s: run("fast", 1, s), "slow": lambda s: run("slow", 4, s)}
    fast, slow = interleave_inputs(ways, [0.001, 0.003], reference="fast", seconds=0)
    assert (fast.ms, fast.ratio, fast.spread) == (pytest.approx(4), 1.0, 0.0)
    assert slow.ms == pytest.approx(16) and slow.ratio == pytest.approx(4) and slow.spread == pytest.approx(0, abs=1e-9)
    assert calls == {"fast": 42, "slow": 42}  # a warm-up and 20 rounds


def test_slow_functions_run_in_three_rounds_and_are_compared_with_these(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, order = Clock(), []
    monkeypatch.setattr("benchmarks.timing.time", clock)

    def run(name: str) -> None:
        order.append(name)
        clock.wait(1.0 if len(order) < 12 else 0.5)  # the machine becomes faster after the three rounds

    ways = {name: lambda _, name=name: run(name) for name in "ab"}
    a, b = interleave_inputs(ways, [None], reference="a", slow=["b"], seconds=0, rounds=8)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab" + "a" * 5
    assert (a.ms, b.ms, b.ratio) == (500, 1000, 1.0)


def test_spread_is_half_the_difference_of_even_and_odd_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = Clock(), []
    monkeypatch.setattr("benchmarks.timing.time", clock)

    def other(_: None) -> None:
        calls.append(None)
        clock.wait(2.0 if len(calls) % 2 else 3.0)

    ways = {"one": lambda _: clock.wait(1.0), "other": other}
    _, found = interleave_inputs(ways, [None], reference="one", seconds=0, rounds=4)
    assert found.ratio == 2.0 and found.spread == 0.5


def test_an_unknown_measurement_lists_all_names() -> None:
    with pytest.raises(UnknownNameError, match="'edge'.*'edges'") as caught:
        measure("edge")
    assert all(name in str(caught.value) for name in MEASUREMENTS)
