"""End of a command that Ctrl-C or SIGTERM stopped after a part of its files: what is written, and how to go on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

import typer

from protgraph.cli.signals import exit_code

__all__ = ["LEFT_SUFFIX", "end_interrupted", "end_with_files_left"]

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

    Parameters
    ----------
    out : Path, optional
        Output, which has the results of the sources that are done. Without a file, only their numbers are printed.
    sources, done : collection of str
        All sources of the command, and those that are finished or failed.
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
