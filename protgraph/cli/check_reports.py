"""Reports of ``protgraph check``: results of the suite as lines of text, in this process or in others.

Components of other distributions are checked in a process of each distribution, with a time limit. A process may end,
crash or hang: that is reported as a failed check. No such component is imported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from protgraph.registry import BUILT_IN, registries
from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised

if TYPE_CHECKING:
    from protgraph.testing import Component, Report
    from protgraph.testing.component import ComponentKind
    from protgraph.testing.equivariance_table import EquivarianceRow
    from protgraph.testing.runner import Runner

__all__ = ["CheckOptions", "CheckedComponent", "ForeignChecks", "check_components", "is_foreign"]

_SIGN = {"passed": ("✓", "green"), "failed": ("✗", "red"), "expected": ("~", "yellow"), "skipped": ("-", None)}


@dataclass(frozen=True)
class CheckOptions:
    """Options of a check."""

    device: str  # "cpu", "cuda" or "cuda:1"
    dtype: str
    full: bool  # read all proteins of datasets
    verbose: bool  # show all reports of a component, not only failures
    with_errors: bool  # measure the equivariance errors by type and device
    only: tuple[str, ...] = ()  # names of the checks; empty: all
    timeout: float = 300.0  # seconds for one check of a component of another distribution
    quick: bool = False  # leave out the checks that take seconds


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

    ``run``: ``run.timeout`` is the time limit of each request.
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

    return Runner(Component(name, kind), run.device, dtype_of(run.dtype), run.full, run.quick)


@dataclass(frozen=True)
class CheckedComponent:
    """Findings on one component.

    ``lines``: reports with terminal colors. ``row``: its errors, if they were asked for.
    """

    status: str
    lines: tuple[str, ...]
    row: EquivarianceRow | None = None


def check_components(
    components: Sequence[Component], run: CheckOptions, *, jobs: int, foreign: ForeignChecks
) -> Iterator[CheckedComponent]:
    """Check each component, and yield the findings in order."""
    if jobs == 1:
        yield from (_checked(component, run, foreign) for component in components)
        return
    from protgraph.worker_pool import WorkerPool

    pool = WorkerPool(partial(_checked_alone, run=run), workers=min(jobs, len(components)))
    with closing(pool.run(components, in_order=True)) as results:
        for component, checked in results:
            if isinstance(checked, WorkerDied):
                sign = typer.style("✗", fg="red")
                checked = CheckedComponent("failed", (f"{sign} {component!s:<40} its process {checked.reason}",))
            yield checked


def _checked_alone(component: Component, run: CheckOptions) -> CheckedComponent:
    with ForeignChecks(run) as foreign:
        return _checked(component, run, foreign)


def _checked(component: Component, run: CheckOptions, foreign: ForeignChecks) -> CheckedComponent:
    """Check one component, and free the modules and dictionaries that it needed."""
    from protgraph.process_memory import mmap_large_blocks, release_component_dictionary
    from protgraph.testing import check_component, release_modules
    from protgraph.testing.equivariance_table import measure_equivariance

    mmap_large_blocks()
    is_isolated = component.definition is None and is_foreign(component.kind, component.name)
    if is_isolated:
        results = foreign.reports(component)
    else:
        results = check_component(
            component, device=run.device, dtype=run.dtype, full=run.full, quick=run.quick, only=run.only
        )
    status, lines = _summary(component, results, verbose=run.verbose)
    row = None
    if run.with_errors and component.kind in ("featurizer", "layer", "head", "model"):
        row = foreign.row(component) if is_isolated else measure_equivariance(component)
    release_component_dictionary()
    release_modules()
    return CheckedComponent(status, tuple(lines), row)


def _summary(component: Component, results: Iterator[Report], *, verbose: bool) -> tuple[str, list[str]]:
    """Return "passed", "failed" or "skipped", and the reports of one component, all or the failures only."""
    reports: list[Report] = []
    for report in results:
        reports.append(_without_repetition(report, reports))
    failed = [report for report in reports if not report.ok]
    is_skipped = reports[0].status == "skipped"  # it cannot be built here
    status = "failed" if failed else "skipped" if is_skipped else "passed"
    if verbose:
        return status, [typer.style(str(component), bold=True), *map(_line, reports)]
    sign, color = _SIGN[status]
    summary = reports[0].message if is_skipped else _counts(reports)
    return status, [f"{typer.style(sign, fg=color)} {component!s:<40} {summary}", *map(_line, failed)]


def _without_repetition(report: Report, earlier: Sequence[Report]) -> Report:
    """Return a report whose message refers to the first check that failed for the same fault."""
    first = next((r.check for r in earlier if report.fault and r.fault == report.fault), None)
    return report if first is None else replace(report, message=f"the same fault as in {first}")


def _counts(reports: Sequence[Report]) -> str:
    worst = max((r.error for r in reports if r.check == "rotation" and r.error is not None), default=None)
    statuses = Counter(report.status for report in reports)
    counts = f"{statuses['passed']} passed"
    counts += "".join(f", {statuses[s]} {s}" for s in ("expected", "failed") if s in statuses)
    return counts if worst is None else f"{counts}  rotation {worst:.0e}"


def _line(report: Report) -> str:
    sign, color = _SIGN[report.status]
    error = "" if report.error is None else f"{report.error:.1e}"
    message = report.message.replace("\n", "\n    ")
    line = f"  {typer.style(sign, fg=color)} {report.check:<24} {error:<9} {message}"
    return line.rstrip()
