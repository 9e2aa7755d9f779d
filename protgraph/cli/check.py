"""Command ``protgraph check``: run the conformity suite on components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from protgraph.cli.model_argument import SetValues, find_model
from protgraph.cli.output_path import Overwrite, check_output
from protgraph.errors import OptionError, UnknownNameError, suggest

if TYPE_CHECKING:
    from protgraph.cli.check_reports import ForeignChecks
    from protgraph.registry import Registry
    from protgraph.testing import Component
    from protgraph.testing.component import ComponentKind
    from protgraph.testing.equivariance_table import EquivarianceRow

__all__ = ["check_command"]

ENTRY_POINTS = {"protgraph.commands": {"check": "check_command"}}

_KINDS = ("featurizers", "layers", "heads", "models", "tasks", "datasets", "metrics", "readers", "commands")


def check_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Names of {', '.join(_KINDS[:-1])} or commands; a family means all its variants. Or models as .toml."
        ),
    ] = None,
    settings: SetValues = None,
    everything: Annotated[bool, typer.Option("--all", help="Check every registered component.")] = False,
    kind: Annotated[str | None, typer.Option(help=f"Check only one kind: {', '.join(_KINDS)}.")] = None,
    device: Annotated[str, typer.Option(help="Device to run on: cpu, cuda or cuda:1.")] = "cpu",
    dtype: Annotated[
        str, typer.Option(help="float64 (errors up to 1e-10) or float32 (errors up to each component's tolerance).")
    ] = "float64",
    full: Annotated[bool, typer.Option("--full", help="Read all proteins of datasets, and count them.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the checks that take seconds, with a line for each.")
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Write the equivariance errors by type and device to a .csv file, and a page on them to this .md file."
        ),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this check, e.g. rotation; can be repeated.")] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes; each checks one component at a time.")
    ] = 1,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds for one check of a component of another distribution.")
    ] = 300.0,
    overwrite: Overwrite = False,
) -> None:
    """Check that components do what they declare: fields, symmetry, batching, gradients, sizes, state, devices.

    Of tasks: derived labels, loss and metrics. Of datasets: card, examples, splits that share no protein, and labels.
    Of metrics: values, direction and weights. Of readers: their example, entries, and files that they refuse. Of
    commands: help, exit codes and imports.

    Components of other distributions run in a process of their own: one that ends it, crashes or exceeds --timeout
    fails its check. Mutation scorers and trained models have no checks.

    A component whose optional dependency is not installed, or a dataset that is not prepared, is skipped; the report
    has the command. The exit code is 1 if a check fails. If the command is interrupted, the errors so far are in the
    table with '.partial' after its name.

    \b
    Examples:
      protgraph check egnn
      protgraph check egnn --only rotation --only reflection
      protgraph check model.toml --set layers.1.dim=32
      protgraph check --all --kind layers --quick
      protgraph check --all --jobs 8 --table equivariance.md
    """
    from protgraph.cli.check_reports import CheckOptions, ForeignChecks, check_components

    if table is not None:
        check_output(table, option="--table", overwrite=overwrite, suffixes=[".md"])
        check_output(table.with_suffix(".csv"), option="--table", overwrite=overwrite)
    _require_device(device)
    checks = _check_names(only or [])
    run = CheckOptions(
        device, dtype, full, verbose=False, with_errors=table is not None, only=checks, timeout=timeout, quick=quick
    )
    rows: list[EquivarianceRow] = []
    statuses: list[str] = []
    with ForeignChecks(run) as foreign:
        components = _select(names or [], everything, kind, foreign, settings=settings)
        run = replace(run, verbose=len(components) <= 4)
        try:
            for report in check_components(components, run, jobs=jobs, foreign=foreign):
                typer.echo("\n".join(report.lines))
                statuses.append(report.status)
                if report.row is not None:
                    rows.append(report.row)
        except BaseException:
            if table is not None and rows:
                _write_table(rows, table.with_suffix(".csv.partial"))
            raise
        if table is not None:
            _write_table(rows, table.with_suffix(".csv"))
            _write_page(rows, table)
    _summarize(statuses)
    if "failed" in statuses:
        raise typer.Exit(1)


def _select(
    names: Sequence[str], everything: bool, kind: str | None, foreign: ForeignChecks, *, settings: list[str] | None
) -> list[Component]:
    """Return the components to check; those of other distributions are not imported here."""
    from protgraph.registry import registries
    from protgraph.testing import find_components

    _check_selection(names, everything, settings)
    plural = _plural(kind) if kind else None
    searched = [registries[k] for k in _KINDS if plural in (None, k)]
    if everything:
        return _all_components(searched, foreign)
    components = []
    singular = cast("ComponentKind", plural.removesuffix("s")) if plural else None
    for name in names:
        if settings or name.endswith(".toml"):
            components += find_components(find_model(name, settings))
            continue
        components += _of_registries(searched, name, foreign) or find_components(name, kind=singular)  # raises
    return components


def _check_selection(names: Sequence[str], everything: bool, settings: list[str] | None) -> None:
    if bool(names) == everything:
        raise OptionError(
            "Components to check: none or too many. Give names, or --all (with --kind for one kind only)."
        )
    if everything and settings:
        raise OptionError("--set changes one model. Give its name instead of --all.")


def _plural(kind: str) -> str:
    """Return the name of the registry of a kind, which may be in the singular."""
    plural = f"{kind.removesuffix('s')}s"
    if plural not in _KINDS:
        hint = suggest(kind, _KINDS)
        raise OptionError(f"--kind {kind!r} is not a kind of component.{hint} Use one of {', '.join(_KINDS)}.")
    return plural


def _all_components(registries: Sequence[Registry], foreign: ForeignChecks) -> list[Component]:
    components = []
    for registry in registries:
        for name in registry:
            components += _variants(registry, name, foreign)
    return components


def _of_registries(registries: Sequence[Registry], name: str, foreign: ForeignChecks) -> list[Component]:
    components = []
    for registry in registries:
        components += _variants(registry, name, foreign)
    return components


def _variants(registry: Registry, name: str, foreign: ForeignChecks) -> list[Component]:
    """Return a component of a registry, of a family all variants; none if the registry does not have the name."""
    from protgraph.cli.check_reports import is_foreign
    from protgraph.testing import Component, find_components

    kind = cast("ComponentKind", registry.kind)
    try:
        is_isolated = is_foreign(kind, name)
    except UnknownNameError:
        return []
    if is_isolated:
        return [Component(variant, kind) for variant in foreign.variants(kind, name)]
    return find_components(name, kind=kind) if name in registry else []


def _check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of checks, all of which must exist."""
    from protgraph.testing.suite import CHECKS

    allowed = [check.name for check in CHECKS]
    for name in names:
        if name not in allowed:
            raise OptionError(f"--only {name!r} is not a check.{suggest(name, allowed)} Checks: {', '.join(allowed)}.")
    return tuple(names)


def _require_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as e:
        raise OptionError(f"--device {device}: {str(e).splitlines()[0]}") from e


def _summarize(statuses: Sequence[str]) -> None:
    """Print how many components pass, fail and are skipped, and the peak memory of this process."""
    import torch

    from protgraph.process_memory import peak_memory

    parts = [f"{statuses.count('passed')} of {len(statuses)} components pass"]
    parts += [f"{n} {status}" for status in ("failed", "skipped") if (n := statuses.count(status))]
    parts.append(f"peak memory {peak_memory(torch.device('cpu')):.0f} MiB")
    typer.secho(", ".join(parts), fg="red" if "failed" in statuses else "green", bold=True)


def _write_table(rows: Sequence[EquivarianceRow], path: Path) -> None:
    from protgraph.file_io import write_text_file
    from protgraph.testing.equivariance_table import equivariance_csv

    write_text_file(path, equivariance_csv(rows))
    typer.echo(f"wrote {path}")


def _write_page(rows: Sequence[EquivarianceRow], path: Path) -> None:
    import sys

    from protgraph.file_io import write_text_file
    from protgraph.testing.equivariance_table import equivariance_markdown

    command = " ".join(["protgraph", *sys.argv[1:]])
    page = equivariance_markdown(rows, table=path.with_suffix(".csv").name, command=command)
    write_text_file(path, page)
    typer.echo(f"wrote {path}")
