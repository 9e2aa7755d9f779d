"""Checks of components of other distributions, each distribution in a process of its own, with a time limit.

A process may end, crash or hang: that is reported as a failed check. No such component is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from protgraph.registry import BUILT_IN, registries
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

if TYPE_CHECKING:
    from protgraph.testing import Component, Report
    from protgraph.testing.component import ComponentKind
    from protgraph.testing.equivariance_table import EquivarianceRow
    from protgraph.testing.runner import Runner

__all__ = ["CheckOptions", "ForeignChecks", "is_foreign"]


@dataclass(frozen=True)
class CheckOptions:
    """Options of a check.

    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:1".
    full : bool
        Read all proteins of datasets.
    verbose : bool
        Show all reports of a component, not only failures.
    with_errors : bool
        Measure the equivariance errors by type and device.
    only : tuple of str
        Names of the checks; empty: all.
    timeout : float
        Seconds for one check of a component of another distribution.
    """

    device: str
    dtype: str
    full: bool
    verbose: bool
    with_errors: bool
    only: tuple[str, ...] = ()
    timeout: float = 300.0


class _Request(NamedTuple):
    """Request to the process of a distribution; "start" imports protgraph only."""

    action: Literal["start", "variants", "check", "row"]
    kind: ComponentKind
    name: str
    check: str = ""


def is_foreign(kind: ComponentKind, name: str) -> bool:
    """Return True for a component of another distribution or of ``--import``; nothing is imported.

    A component that only this process registered cannot be checked in another one.
    """
    entry = registries[f"{kind}s"].entry(name)
    return entry.distribution != BUILT_IN and not entry.is_session


class ForeignChecks:
    """Checks of the components of other distributions, with one process for each distribution.

    Parameters
    ----------
    run : CheckOptions
        ``run.timeout`` is the time limit of each request.
    """

    def __init__(self, run: CheckOptions) -> None:
        self.run = run
        self._workers: dict[str, WorkerProcess] = {}

    def __enter__(self) -> ForeignChecks:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers.values():
            worker.close()

    def variants(self, kind: ComponentKind, name: str) -> list[str]:
        """Return the names of all variants of a family, else the name itself, also if it cannot be loaded."""
        names = self._answer(_Request("variants", kind, name))
        return [name] if isinstance(names, WorkerDied) else names

    def reports(self, component: Component) -> Iterator[Report]:
        """Yield the report of each check; if the process ends, that of this check is the last."""
        from protgraph.testing import Report
        from protgraph.testing.suite import checks_of

        entry = registries[f"{component.kind}s"].entry(component.name)
        for check in checks_of(component.kind, self.run.only):
            report = self._answer(_Request("check", component.kind, component.name, check.name))
            if isinstance(report, WorkerDied):
                message = (
                    f"{component} of {entry.source} ({entry.object}): its process {report.reason}. Later checks were "
                    "not run."
                )
                yield Report(str(component), check.name, "failed", message=message)
                return
            yield report
            if check.name == "builds" and report.status in ("failed", "skipped"):
                return

    def row(self, component: Component) -> EquivarianceRow | None:
        """Return the equivariance errors of a component; None if its process ends."""
        row = self._answer(_Request("row", component.kind, component.name))
        return None if isinstance(row, WorkerDied) else row

    def _answer(self, request: _Request) -> Any:
        """Return the result of a request, or how the process died."""
        source = registries[f"{request.kind}s"].entry(request.name).source
        if source not in self._workers:
            self._workers[source] = WorkerProcess(partial(_answer, self.run))
            self._workers[source].run(_Request("start", request.kind, ""))  # without time limit: nothing foreign yet
        answer = self._workers[source].run(request, time_limit=self.run.timeout)
        if isinstance(answer, WorkerDied):
            self._workers.pop(source).close()
        if isinstance(answer, WorkerRaised):
            raise answer.error
        return answer


def _answer(run: CheckOptions, request: _Request) -> object:
    """Do in the worker process what is asked for."""
    from protgraph.testing import CHECKS, Component, Report, find_components
    from protgraph.testing.equivariance_table import measure_equivariance
    from protgraph.testing.suite import run_check

    if request.action == "start":
        return None
    if request.action == "variants":
        return [component.name for component in find_components(request.name, kind=request.kind)]
    if request.action == "row":
        return measure_equivariance(Component(request.name, request.kind))
    check = next(check for check in CHECKS if check.name == request.check)
    runner = _runner(request.kind, request.name, run)
    try:
        return run_check(check, runner)
    except BaseException as e:
        if isinstance(e, Exception):
            raise
        component = str(runner.component)
        return Report(component, check.name, "failed", message=f"{component}: it raises {type(e).__name__}: {e}")


@lru_cache(maxsize=1)
def _runner(kind: ComponentKind, name: str, run: CheckOptions) -> Runner:
    """Return the runner that all checks of a component share, with what they compute once."""
    from protgraph.testing import Component
    from protgraph.testing.runner import Runner
    from protgraph.testing.suite import dtype_of

    return Runner(Component(name, kind), run.device, dtype_of(run.dtype), run.full)
