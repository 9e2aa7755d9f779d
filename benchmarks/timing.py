"""Time several implementations in turns, so that load of the machine affects all of them equally.

Not pyperf (2.10.0) and not asv (0.6.6), 2026-11-22: they time each implementation in new processes, 20 by default in
pyperf, and importing torch and the layers takes 6 s in each; they do not compare the results of implementations.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

import torch

__all__ = ["Measurement", "Timing", "device_clock", "interleave", "interleave_inputs", "wait_for"]

T = TypeVar("T")

_MIN_ROUNDS = 5  # for a stable median
_MAX_ROUNDS = 200
_SLOW_ROUNDS = 3


@dataclass(frozen=True)
class Timing:
    """Run time of one implementation.

    Parameters
    ----------
    name : str
        Name of the implementation.
    ms : float
        Median over rounds, or the sum over inputs of the least time of each (:func:`interleave_inputs`).
    ratio : float
        Median over rounds of its time divided by that of the reference in the same round, or ratio of the sums; 1 for
        the reference.
    spread : float, optional
        Half of the difference between the ratios of even and of odd rounds, if it is measured.
    """

    name: str
    ms: float
    ratio: float
    spread: float | None = None


@dataclass(frozen=True)
class Measurement:
    """Run times of several implementations of one computation.

    Parameters
    ----------
    title : str
        Computation and input.
    reference : str
        Implementation that ratios refer to: that of protgraph, or the parser that "featurize" is compared with.
    rows : tuple of Timing
        In the order of the measurement; the lower bound last if it can be timed.
    lower_bound : str
        Least work of any implementation: bytes to move, or operations.
    error : float
        Largest difference of a result from that of the reference, relative to the largest value.
    """

    title: str
    reference: str
    rows: tuple[Timing, ...]
    lower_bound: str
    error: float

    @property
    def agreement(self) -> str:
        """Agreement of the results, as text."""
        return "all results are equal" if self.error == 0 else f"results agree within {self.error:.0e}"


def wait_for(device: torch.device | str) -> Callable[[], None]:
    """Return a function that waits until a GPU has finished its work; on a CPU, one that does nothing."""
    device = torch.device(device)
    return partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None


def device_clock(device: torch.device | str) -> Callable[[], float]:
    """Return the clock of the steps of a device, seconds: CPU time of the process, or the time when a GPU is done."""
    wait = wait_for(device)
    if torch.device(device).type == "cpu":
        return time.process_time

    def clock() -> float:
        wait()
        return time.perf_counter()

    return clock


def interleave(
    implementations: Mapping[str, Callable[[], object]],
    *,
    reference: str,
    seconds: float = 5.0,
    rounds: int = _MIN_ROUNDS,
    warm: bool = False,
    device: torch.device | str = "cpu",
) -> tuple[Timing, ...]:
    """Run every implementation once per round, for at least ``rounds`` rounds, until the time is over.

    Parameters
    ----------
    implementations : mapping of str to callable
        Each runs the whole computation. One call before the first round is a warm-up, unless ``warm``.
    reference : str
        Implementation with ratio 1.
    seconds : float
        Approximate duration; at most 200 rounds.
    rounds : int
        Minimum number of rounds.
    warm : bool
        True if every implementation has run before: skips the warm-up.
    device : torch.device or str
        Device that the implementations use. The time of a call on a GPU ends with its last kernel.

    Notes
    -----
    Each round starts with another implementation, so that none always runs with the caches that the same one left.
    """
    for run in () if warm else implementations.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in implementations}
    wait = wait_for(device)
    wait()
    names, end = list(implementations), time.perf_counter() + seconds
    done = 0
    while done < rounds or (time.perf_counter() < end and done < _MAX_ROUNDS):
        for i in range(len(names)):
            name = names[(i + done) % len(names)]
            start = time.perf_counter()
            implementations[name]()
            wait()
            times[name].append(time.perf_counter() - start)
        done += 1
    timings = []
    for name, seconds_of_runs in times.items():
        pairs = zip(seconds_of_runs, times[reference], strict=True)
        ratio = median(run / run_of_reference for run, run_of_reference in pairs)
        timings.append(Timing(name, median(seconds_of_runs) * 1e3, ratio))
    return tuple(timings)


def interleave_inputs(
    functions: Mapping[str, Callable[[T], object]],
    inputs: Sequence[T],
    *,
    reference: str,
    slow: Collection[str] = (),
    seconds: float = 5.0,
    rounds: int = 20,
) -> tuple[Timing, ...]:
    """Run every function on every input once per round, and return the sums over inputs of the least times.

    The least of many short times does not depend on the load of the machine if some of them have none; a median does.

    Parameters
    ----------
    functions : mapping of str to callable
        One call of each per input before the first round is a warm-up.
    inputs : sequence
        One function runs on all of them before the next one, as a program that reads many files; each round begins
        with another function.
    reference : str
        Function with ratio 1.
    slow : collection of str
        Functions that run in the first 3 rounds only; their ratio is to the least times of these rounds.
    seconds : float
        Least duration; at most 200 rounds.
    rounds : int
        Minimum number of rounds.

    Notes
    -----
    The garbage collector runs before a function runs on its inputs, and is off until its end, as in :mod:`timeit`.
    """
    for run in functions.values():
        for value in inputs:
            run(value)
    times: dict[str, list[list[float]]] = {name: [] for name in functions}  # round, input
    end, done = time.perf_counter() + seconds, 0
    while done < rounds or (time.perf_counter() < end and done < _MAX_ROUNDS):
        names = [name for name in functions if done < _SLOW_ROUNDS or name not in slow]
        first = done % len(names)
        for name in (*names[first:], *names[:first]):
            times[name].append(_times(functions[name], inputs))
        done += 1
    return tuple(_least(name, times[name], times[reference]) for name in functions)


def _times(function: Callable[[T], object], inputs: Sequence[T]) -> list[float]:
    """Return the time of each call, with the garbage collector off."""
    gc.collect()
    was_on, seconds = gc.isenabled(), []
    gc.disable()
    try:
        for value in inputs:
            start = time.perf_counter()
            function(value)
            seconds.append(time.perf_counter() - start)
    finally:
        if was_on:
            gc.enable()
    return seconds


def _least(name: str, times: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Timing:
    """Return the sum of least times ``(rounds, inputs)``, and the ratio to that of the same rounds of the reference."""
    base = base[: len(times)]
    even, odd = (_total(times[i::2]) / _total(base[i::2]) for i in (0, 1))
    return Timing(name, _total(times) * 1e3, _total(times) / _total(base), abs(even - odd) / 2)


def _total(times: Sequence[Sequence[float]]) -> float:
    return sum(map(min, zip(*times, strict=True)))
