"""Time several implementations in turns, so that load of the machine affects all of them equally.

Not pyperf (2.10.0) and not asv (0.6.6), 2026-11-22: they time each implementation in new processes, 20 by default in
pyperf, and importing torch and the layers takes 6 s in each; they do not compare the results of implementations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

__all__ = ["Measurement", "Timing", "interleave"]

_MIN_ROUNDS = 5  # for a stable median
_MAX_ROUNDS = 200


@dataclass(frozen=True)
class Timing:
    """Run time of one implementation.

    Parameters
    ----------
    name : str
        Name of the implementation.
    median_ms : float
        Median over rounds.
    ratio : float
        Median over rounds of its time divided by that of the reference in the same round; 1 for the reference.
    """

    name: str
    median_ms: float
    ratio: float


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


def interleave(
    implementations: Mapping[str, Callable[[], object]],
    *,
    reference: str,
    seconds: float = 5.0,
    rounds: int = _MIN_ROUNDS,
    warm: bool = False,
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

    Notes
    -----
    Each round starts with another implementation, so that none always runs with the caches that the same one left.
    """
    for run in () if warm else implementations.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in implementations}
    names, end = list(implementations), time.perf_counter() + seconds
    done = 0
    while done < rounds or (time.perf_counter() < end and done < _MAX_ROUNDS):
        for i in range(len(names)):
            name = names[(i + done) % len(names)]
            start = time.perf_counter()
            implementations[name]()
            times[name].append(time.perf_counter() - start)
        done += 1
    base = times[reference]
    return tuple(
        Timing(name, median(t) * 1e3, median(a / b for a, b in zip(t, base, strict=True))) for name, t in times.items()
    )
