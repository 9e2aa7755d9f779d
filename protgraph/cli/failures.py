"""Report of failures at the end of a command: a manifest beside the output, a message and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from protgraph.cli.output_path import FAILURES_SUFFIX

if TYPE_CHECKING:
    from protgraph.featurize import Failure

__all__ = ["report_failures"]


def report_failures(failures: Sequence[Failure], out: Path, *, any_succeeded: bool) -> None:
    """Write ``OUT.failures.csv`` and exit, or remove that file of an earlier run if nothing failed.

    Parameters
    ----------
    failures : sequence of Failure
    out : Path
        Output of the command.
    any_succeeded : bool
        The exit code is 1 if other files succeeded, 2 if all failed.
    """
    from protgraph.featurize import write_failures

    path = write_failures(out.parent / f"{out.name}{FAILURES_SUFFIX}", failures)
    if path is None:
        return
    from rich.console import Console

    message = f"[bold red]{len(failures)} failed[/]; see {path}. The first: "
    console = Console(stderr=True)
    console.print(message, end="", highlight=False, soft_wrap=True)
    console.print(str(failures[0]), markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1 if any_succeeded else 2)
