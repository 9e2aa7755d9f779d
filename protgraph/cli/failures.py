"""End of a command that failed or was stopped after a part of its files: what is written, message and exit code."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from protgraph.cli.console import text_console
from protgraph.cli.output_path import FAILURES_SUFFIX
from protgraph.cli.signals import exit_code
from protgraph.errors import ProtgraphError
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.featurize import Failure

__all__ = ["LEFT_SUFFIX", "end_interrupted", "end_with_files_left", "failures_of_errors", "report_failures"]


@contextmanager
def failures_of_errors(out: Path) -> Iterator[None]:
    """Write ``OUT.failures.csv`` if the block ends with an error after proteins could not be used.

    Only one process of a distributed run does that.
    """
    try:
        yield
    except ProtgraphError as e:
        if e.failures and os.environ.get("LOCAL_RANK", "0") == "0":
            from protgraph.featurize import write_failures

            path = write_failures(out.with_name(f"{out.name}{FAILURES_SUFFIX}"), e.failures)
            typer.echo(f"{count_noun(len(e.failures), 'protein')} could not be used; see {path}", err=True)
        raise


def report_failures(failures: Sequence[Failure], out: Path | None, *, any_succeeded: bool) -> None:
    """Write ``OUT.failures.csv`` and exit, or remove that file of an earlier run if nothing failed.

    If there is nothing but one failure, its message is printed and no table is written.

    ``out``: output of the command. Without a file, all failures are printed. ``any_succeeded``: the exit code is 1 if
    other files succeeded, 2 if all failed.
    """
    from protgraph.featurize import write_failures

    is_whole_result = len(failures) == 1 and not any_succeeded
    path = None
    if out is not None:
        path = write_failures(out.parent / f"{out.name}{FAILURES_SUFFIX}", [] if is_whole_result else failures)
    if not failures:
        return
    from rich.text import Text

    count = (f"{len(failures)} failed", "bold red")
    text = Text.assemble(count, f": {failures[0]}")
    if path is not None:
        text = Text.assemble(count, f"; see {path}. The first: {failures[0]}")
    elif len(failures) > 1:
        for failure in failures:
            typer.echo(f"failed: {failure}", err=True)
        text = Text.assemble(count)
    text_console(stderr=True).print(text, soft_wrap=True)
    raise typer.Exit(1 if any_succeeded else 2)


# --- interruptions ---------------------------------------------------------------------------------------------------


#: Appended to the name of the output: the list of files that are not in it.
LEFT_SUFFIX = ".left.txt"


def end_interrupted(e: KeyboardInterrupt, text: str) -> NoReturn:
    """Print how a command was interrupted with a text, and exit with 130 (Ctrl-C) or 143 (SIGTERM)."""
    code = exit_code(e)
    typer.echo(f"interrupted by {'SIGINT' if code == 130 else 'SIGTERM'}: {text}", err=True)
    raise typer.Exit(code) from None


def end_with_files_left(
    e: KeyboardInterrupt, out: Path | None, sources: Sequence[str], done: Collection[str]
) -> NoReturn:
    """Write the sources that are not done to ``OUT.left.txt``, print how to continue with them, and exit.

    ``out``: output, which has the results of the sources that are done. Without a file, only their numbers are printed.
    ``sources``, ``done``: all sources of the command, and those that are finished or failed.
    """
    from protgraph.file_io import write_text_file

    left = [source for source in sources if source not in done]
    if len(left) == len(sources):
        end_interrupted(e, "no file was finished, and nothing is written.")
    if out is None:
        end_interrupted(e, f"{len(sources) - len(left)} of {len(sources)} files are finished.")
    path = out.with_name(f"{out.name}{LEFT_SUFFIX}")
    write_text_file(path, "".join(f"{source}\n" for source in left))
    end_interrupted(
        e,
        f"{len(sources) - len(left)} of {len(sources)} files are finished, and {out} has their results. To continue, "
        f"repeat the command with @{path} in place of the files, and another --out.",
    )
