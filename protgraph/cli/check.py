"""Command ``protgraph check``: run the conformity suite on components."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import Overwrite, check_output, set_aside_if_failed
from protgraph.errors import OptionError, suggest

if TYPE_CHECKING:
    from protgraph.testing import Component, Report

__all__ = ["check_command"]

_KINDS = ("featurizers", "layers", "heads", "models", "tasks", "datasets")
_SIGN = {"passed": ("✓", "green"), "failed": ("✗", "red"), "expected": ("~", "yellow"), "skipped": ("-", None)}


def check_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of components of any kind; a family means all its variants."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Check every registered component.")] = False,
    kind: Annotated[str | None, typer.Option(help=f"Check only one kind: {', '.join(_KINDS)}.")] = None,
    device: Annotated[str, typer.Option(help="Device to run on: cpu, cuda or cuda:1.")] = "cpu",
    dtype: Annotated[
        str, typer.Option(help="float64 (errors up to 1e-10) or float32 (errors up to each component's tolerance).")
    ] = "float64",
    full: Annotated[bool, typer.Option("--full", help="Read all proteins of datasets, and count them.")] = False,
    table: Annotated[
        Path | None, typer.Option(help="Write the equivariance errors by type and device to this Markdown file (.md).")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check that components do what they declare: fields, symmetry, batching, gradients, state, devices.

    Of tasks: derived labels, loss and metrics. Of datasets: card, examples, splits that share no protein, and labels.

    A component whose optional dependency is not installed, or a dataset that is not prepared, is skipped; the report
    has the command. The exit code is 1 if a check fails.

    \b
    Examples:
      protgraph check egnn
      protgraph check --all --kind layers
      protgraph check --all --table equivariance.md
    """
    from protgraph.process_memory import mmap_large_blocks, release_component_dictionary
    from protgraph.testing import release_modules
    from protgraph.testing.equivariance_table import measure_equivariance

    if table is not None:
        check_output(table, option="--table", overwrite=overwrite, suffixes=[".md"])
    mmap_large_blocks()
    components = deque(_select(names or [], everything, kind))
    _require_device(device)
    total, rows, statuses = len(components), [], []
    with set_aside_if_failed(*([table] if table else []), overwrite=overwrite):
        while components:
            component = components.popleft()  # its inputs and modules are freed with it
            statuses.append(_check(component, device, dtype, full=full, verbose=total <= 4))
            if table is not None and component.kind not in ("task", "dataset"):
                rows.append(measure_equivariance(component))
            release_component_dictionary()
            release_modules()
        if table is not None:
            _write_table(rows, table)
    _summarize(statuses)
    if "failed" in statuses:
        raise typer.Exit(1)


def _select(names: Sequence[str], everything: bool, kind: str | None) -> list[Component]:
    from protgraph.registry import registries
    from protgraph.testing import find_components

    plural = f"{kind.removesuffix('s')}s" if kind else None
    if plural is not None and plural not in _KINDS:
        hint = suggest(kind, _KINDS)
        raise OptionError(f"--kind {kind!r} is not a kind of component.{hint} Use one of {', '.join(_KINDS)}.")
    if bool(names) == everything:
        raise OptionError(
            "Components to check: none or too many. Give names, or --all (with --kind for one kind only)."
        )
    if names:
        return find_components(names, kind=plural.removesuffix("s") if plural else None)
    return [c for k in _KINDS if plural in (None, k) for c in find_components(registries[k])]


def _require_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as e:
        raise OptionError(f"--device {device}: {str(e).splitlines()[0]}") from e


def _check(component: Component, device: str, dtype: str, *, full: bool, verbose: bool) -> str:
    """Print the reports of one component, all or the failures only; return "passed", "failed" or "skipped"."""
    from protgraph.testing import check_component

    if verbose:
        typer.secho(str(component), bold=True)
    reports = []
    for report in check_component(component, device=device, dtype=dtype, full=full):
        reports.append(_without_repetition(report, reports))
        if verbose:
            _print(reports[-1])
    failed = [report for report in reports if not report.ok]
    is_skipped = reports[0].status == "skipped"  # it cannot be built here
    status = "failed" if failed else "skipped" if is_skipped else "passed"
    if not verbose:
        sign, color = _SIGN[status]
        summary = reports[0].message if is_skipped else _counts(reports)
        typer.echo(f"{typer.style(sign, fg=color)} {component!s:<40} {summary}")
        for report in failed:
            _print(report)
    return status


def _without_repetition(report: Report, earlier: Sequence[Report]) -> Report:
    """Return a report whose message refers to the first check that failed for the same fault."""
    first = next((r.check for r in earlier if report.fault and r.fault == report.fault), None)
    return report if first is None else replace(report, message=f"the same fault as in {first}")


def _counts(reports: Sequence[Report]) -> str:
    worst = max((r.error for r in reports if r.check == "rotation" and r.error is not None), default=None)
    counts = f"{sum(r.status == 'passed' for r in reports)} passed"
    counts += "".join(f", {n} {s}" for s in ("expected", "failed") if (n := sum(r.status == s for r in reports)))
    return counts if worst is None else f"{counts}  rotation {worst:.0e}"


def _print(report: Report) -> None:
    sign, color = _SIGN[report.status]
    error = "" if report.error is None else f"{report.error:.1e}"
    message = report.message.replace("\n", "\n    ")
    line = f"  {typer.style(sign, fg=color)} {report.check:<24} {error:<9} {message}"
    typer.echo(line.rstrip())


def _summarize(statuses: Sequence[str]) -> None:
    """Print how many components pass, fail and are skipped, and the peak memory of this process."""
    import torch

    from protgraph.process_memory import peak_memory

    parts = [f"{statuses.count('passed')} of {len(statuses)} components pass"]
    parts += [f"{n} {status}" for status in ("failed", "skipped") if (n := statuses.count(status))]
    parts.append(f"peak memory {peak_memory(torch.device('cpu')):.0f} MiB")
    typer.secho(", ".join(parts), fg="red" if "failed" in statuses else "green", bold=True)


def _write_table(rows: Sequence[object], path: Path) -> None:
    import sys

    from protgraph.file_io import write_text_file
    from protgraph.testing.equivariance_table import equivariance_markdown

    command = " ".join(["protgraph", *sys.argv[1:]])
    write_text_file(path, equivariance_markdown(rows, command=command))
    typer.echo(f"wrote {path}")
