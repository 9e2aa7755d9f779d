"""Timing: medians and ratios of functions with known run times."""

from __future__ import annotations

import time

import pytest

from benchmarks.measurements import MEASUREMENTS, measure
from benchmarks.timing import interleave
from protgraph.errors import UnknownNameError


def test_ratio_of_known_times() -> None:
    ways = {"one": lambda: time.sleep(0.004), "three": lambda: time.sleep(0.012)}
    one, three = interleave(ways, reference="one", seconds=0.1)
    assert (one.name, one.ratio) == ("one", 1.0)
    assert 4 <= one.median_ms < 8
    assert 2 < three.ratio < 4


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
