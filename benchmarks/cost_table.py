"""Table of costs of several models or steps: rates, memory or exponents."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CostTable", "show_rows"]

Row = tuple[str | float | None, ...]


@dataclass(frozen=True)
class CostTable:
    """Measured costs, one row per model or step.

    Parameters
    ----------
    title : str
        Computation and input.
    columns : tuple of str
        The first is the name of the row.
    rows : tuple of tuple
        Name, then numbers; None where nothing was measured.
    caption : str
        Definition of the columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str


def show_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows of a table, and print each to standard error when it is measured."""
    done = []
    for row in rows:
        name, *values = row
        print(f"{name}:", *("-" if value is None else f"{value:.3g}" for value in values), file=sys.stderr, flush=True)
        done.append(row)
    return tuple(done)
