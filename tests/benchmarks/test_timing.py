"""Timing: medians and ratios of ways whose times are known."""

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


def test_every_way_runs_equally_often_and_none_always_first() -> None:
    order: list[str] = []
    interleave({name: lambda name=name: order.append(name) for name in "abc"}, reference="a", seconds=0)
    assert [order.count(name) for name in "abc"] == [6, 6, 6]  # a warm-up and 5 rounds
    rounds = ["".join(order[i : i + 3]) for i in range(3, 18, 3)]
    assert rounds == ["abc", "bca", "cab", "abc", "bca"]


def test_ways_that_are_warm_run_for_the_fewest_rounds_alone() -> None:
    order: list[str] = []
    ways = {name: lambda name=name: order.append(name) for name in "ab"}
    interleave(ways, reference="a", seconds=0, rounds=3, warm=True)
    assert "".join(order) == "abbaab"


def test_unknown_measurement_says_which_there_are() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'edges'") as caught:
        measure("edge")
    assert all(name in str(caught.value) for name in MEASUREMENTS)
