"""Text of a command on the terminal: printed as it is, and written in any encoding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["escape_unencodable", "text_console"]

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


def escape_unencodable() -> None:
    r"""Write characters that an encoding lacks as ``\u2192``: a result is not lost because ``→`` cannot be printed.

    The encoding of a terminal or of a redirected output is not UTF-8 on Windows, or with PYTHONIOENCODING.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a notebook or a test has replaced the others
            stream.reconfigure(errors="backslashreplace")
