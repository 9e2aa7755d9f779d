"""``protgraph check``: does a component hold what its declarations promise?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.testing import Result, Subject

__all__ = ["check_command"]

_KINDS = ("featurizers", "layers", "heads", "models")
_SIGN = {"passed": ("✓", "green"), "failed": ("✗", "red"), "expected": ("~", "yellow"), "skipped": ("-", None)}


def check_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Featurizers, layers, heads or models; a family means all its variants.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every registered component.")] = False,
    kind: Annotated[str | None, typer.Option(help="Only featurizers, layers, heads or models.")] = None,
    device: Annotated[str, typer.Option(help="Where to run: cpu, cuda, cuda:1.")] = "cpu",
    dtype: Annotated[
        str, typer.Option(help="float64 (held to 1e-10) or float32 (held to each component's tolerance).")
    ] = "float64",
    table: Annotated[
        Path | None, typer.Option(help="Also write the equivariance errors by type and device, as markdown.")
    ] = None,
) -> None:
    """Check components: what they read and write, symmetry, batching, gradients, degenerate proteins, state.

    The exit code is 1 where a check fails.

    \b
    Examples:
      protgraph check egnn
      protgraph check --all --kind layers
      protgraph check --all --table equivariance.md
    """
    chosen = _chosen(names or [], everything, kind)
    _need(device)
    verbose, failed = len(chosen) <= 4, 0
    for subject in chosen:
        failed += not _report(subject, device, dtype, verbose=verbose)
    if table is not None:
        _write_table(chosen, table)
    good = len(chosen) - failed
    typer.secho(f"{good} of {len(chosen)} components pass", fg="green" if not failed else "red", bold=True)
    if failed:
        raise typer.Exit(1)


def _chosen(names: Sequence[str], everything: bool, kind: str | None) -> list[Subject]:
    from protgraph.registry import registries
    from protgraph.testing import subjects

    given, kind = kind, f"{kind.removesuffix('s')}s" if kind else None
    if kind is not None and kind not in _KINDS:
        raise OptionError(f"--kind {given!r} is none of {', '.join(_KINDS)}")
    if bool(names) == everything:
        raise OptionError("give the names of components, or --all (which may be narrowed by --kind)")
    if names:
        return subjects(names, kind=kind.removesuffix("s") if kind else None)
    return [s for k in _KINDS if kind in (None, k) for s in subjects(registries[k])]


def _need(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as e:
        raise OptionError(f"--device {device}: {str(e).splitlines()[0]}") from e


def _report(subject: Subject, device: str, dtype: str, *, verbose: bool) -> bool:
    """Print the verdicts on one component: all of them, or one line and what failed."""
    from protgraph.testing import check as run

    if verbose:
        typer.secho(str(subject), bold=True)
    results = []
    for result in run(subject, device=device, dtype=dtype):
        results.append(result)
        if verbose:
            _print(result)
    bad = [result for result in results if not result.ok]
    if not verbose:
        sign, color = _SIGN["failed" if bad else "passed"]
        worst = max((r.error for r in results if r.check == "rotation" and r.error is not None), default=None)
        counts = f"{sum(r.status == 'passed' for r in results)} passed"
        counts += "".join(f", {n} {s}" for s in ("expected", "failed") if (n := sum(r.status == s for r in results)))
        shown = "" if worst is None else f"  rotation {worst:.0e}"
        typer.echo(f"{typer.style(sign, fg=color)} {subject!s:<40} {counts}{shown}")
        for result in bad:
            _print(result)
    return not bad


def _print(result: Result) -> None:
    sign, color = _SIGN[result.status]
    error = "" if result.error is None else f"{result.error:.1e}"
    message = result.message.replace("\n", "\n    ")
    line = f"  {typer.style(sign, fg=color)} {result.check:<24} {error:<9} {message}"
    typer.echo(line.rstrip())


def _write_table(chosen: Sequence[Subject], path: Path) -> None:
    import sys

    from protgraph.testing.equivariance_table import markdown, measure

    rows = {subject: measure(subject) for subject in chosen}
    command = " ".join(["protgraph", *sys.argv[1:]])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(markdown(rows, command=command), encoding="utf-8")
    typer.echo(f"wrote {path}")
