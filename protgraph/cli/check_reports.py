"""Checks of one component for the command ``protgraph check``.

Components of protgraph are checked in this process or, with several jobs, in a worker process; those of other
distributions always in a process of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from protgraph.cli.isolated_check import CheckOptions, ForeignChecks, is_foreign

if TYPE_CHECKING:
    from protgraph.testing import Component, Report
    from protgraph.testing.equivariance_table import EquivarianceRow

__all__ = ["CheckedComponent", "check_components"]

_SIGN = {"passed": ("✓", "green"), "failed": ("✗", "red"), "expected": ("~", "yellow"), "skipped": ("-", None)}


@dataclass(frozen=True)
class CheckedComponent:
    """Findings on one component.

    Parameters
    ----------
    lines : tuple of str
        Reports with terminal colors.
    row : EquivarianceRow, optional
        Its errors, if they were asked for.
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
    from protgraph.worker_process import WorkerDied

    pool = WorkerPool(partial(_checked_alone, run=run), workers=min(jobs, len(components)))
    with closing(pool.run(components, in_order=True)) as results:
        for component, found in results:
            if isinstance(found, WorkerDied):
                sign = typer.style("✗", fg="red")
                found = CheckedComponent("failed", (f"{sign} {component!s:<40} its process {found.reason}",))
            yield found


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
        results = check_component(component, device=run.device, dtype=run.dtype, full=run.full, only=run.only)
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
    counts = f"{sum(r.status == 'passed' for r in reports)} passed"
    counts += "".join(f", {n} {s}" for s in ("expected", "failed") if (n := sum(r.status == s for r in reports)))
    return counts if worst is None else f"{counts}  rotation {worst:.0e}"


def _line(report: Report) -> str:
    """Return one report as a line."""
    sign, color = _SIGN[report.status]
    error = "" if report.error is None else f"{report.error:.1e}"
    message = report.message.replace("\n", "\n    ")
    line = f"  {typer.style(sign, fg=color)} {report.check:<24} {error:<9} {message}"
    return line.rstrip()
