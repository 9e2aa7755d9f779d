"""Table of costs of several models or steps: rates, memory or exponents."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CostTable"]


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
    rows: tuple[tuple[str | float | None, ...], ...]
    caption: str
