"""Text of a command on the terminal: printed as it is, and written in any encoding."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

__all__ = ["escape_unencodable", "print_rows", "progress_bar", "text_console"]

_WIDTH = 120  # of tables that are written to a file or another program


def text_console(*, stderr: bool = False) -> Console:
    """Return a console of rich that prints the texts of users as they are.

    By default, rich takes ``[A]`` of ``B:52[A]`` for markup, and prints ``:A:`` as an emoji.
    """
    from rich.console import Console

    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and not stderr:
        console.width = _WIDTH
    return console


def progress_bar(*columns: ProgressColumn | str) -> Progress:
    """Return a progress bar on standard error, which is removed at the end; nothing is printed without a terminal."""
    from rich.progress import Progress

    console = text_console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_rows(rows: Sequence[Sequence[str]], indent: str = "") -> None:
    """Print rows of cells in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo(f"{indent}{'  '.join(cells)}".rstrip())


def escape_unencodable() -> None:
    r"""Write characters that an encoding lacks as ``\u2192``: a result is not lost because ``→`` cannot be printed.

    The encoding of a terminal or of a redirected output is not UTF-8 on Windows, or with PYTHONIOENCODING.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a notebook or a test has replaced the others
            stream.reconfigure(errors="backslashreplace")
