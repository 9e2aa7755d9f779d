"""Description of a group of commands, e.g. ``protgraph data``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CommandGroup"]


@dataclass(frozen=True)
class CommandGroup:
    """Group of commands: registered as ``NAME``, its commands as ``NAME.COMMAND`` by any distribution.

    ``help``: text of ``protgraph NAME --help``; its first paragraph is shown in ``protgraph --help``. ``default``:
    command of a call without one; by default, the help is printed. ``first``: commands that the help lists first, in
    this order. The others follow in alphabetical order.
    """

    help: str
    default: str = ""
    first: tuple[str, ...] = ()
