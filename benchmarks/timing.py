"""Time several ways of doing one thing, in turns, so that a slow moment of the machine hits them all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

__all__ = ["Measurement", "Timing", "interleave"]

_ROUNDS = 5  # fewest, so that a median means something
_MOST_ROUNDS = 200


@dataclass(frozen=True)
class Timing:
    """One way of doing it.

    Parameters
    ----------
    name : str
        What it is.
    median_ms : float
        Median over rounds.
    ratio : float
        Median over rounds of its time divided by the reference's in the same round; the reference has 1.
    """

    name: str
    median_ms: float
    ratio: float


@dataclass(frozen=True)
class Measurement:
    """Several ways of doing one thing.

    Parameters
    ----------
    title : str
        What is measured, on which input.
    reference : str
        The way that ratios refer to: ours.
    rows : tuple of Timing
        In the order of the measurement, the floor last where it can be timed.
    floor : str
        The least that any way has to do: bytes to move or operations to make.
    error : float
        Largest difference of any way's results from the reference's, relative to the largest value.
    """

    title: str
    reference: str
    rows: tuple[Timing, ...]
    floor: str
    error: float

    @property
    def checked(self) -> str:
        """How far the ways agree, in words."""
        return "all results are the same" if self.error == 0 else f"results agree within {self.error:.0e}"


def interleave(
    ways: Mapping[str, Callable[[], object]],
    *,
    reference: str,
    seconds: float = 5.0,
    rounds: int = _ROUNDS,
    warm: bool = False,
) -> tuple[Timing, ...]:
    """Run every way once a round, for at least ``rounds`` rounds, until the time is used up.

    Parameters
    ----------
    ways : mapping of str to callable
        Each does the whole of it. One call before the first round warms up, unless ``warm``.
    reference : str
        The way that has ratio 1.
    seconds : float
        About how long to go on; also at most 200 rounds.
    rounds : int
        Fewest rounds, for ways that take seconds.
    warm : bool
        Whether every way has run before, so that no call is needed to warm up.

    Notes
    -----
    Each round starts with another way, so that none always follows the same one's traces in the caches.
    """
    for way in () if warm else ways.values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    names, end = list(ways), time.perf_counter() + seconds
    done = 0
    while done < rounds or (time.perf_counter() < end and done < _MOST_ROUNDS):
        for i in range(len(names)):
            name = names[(i + done) % len(names)]
            start = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - start)
        done += 1
    base = times[reference]
    return tuple(
        Timing(name, median(t) * 1e3, median(a / b for a, b in zip(t, base, strict=True))) for name, t in times.items()
    )
