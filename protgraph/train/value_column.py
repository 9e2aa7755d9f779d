"""Columns of predictions, and the choice of one value per residue to show on a structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, suggest

__all__ = ["ValueColumn", "choose_value", "prediction_columns", "target_names"]

_CONFIDENCE = "confidence"


@dataclass(frozen=True)
class ValueColumn:
    """One value per row of predictions.

    Parameters
    ----------
    name : str
        Predicted column, or "confidence", the largest probability of a class.
    is_probability : bool
        True for values from 0 to 1.
    classes : tuple of str
        Names of the classes whose index is the value; empty for numbers.
    """

    name: str
    is_probability: bool = False
    classes: tuple[str, ...] = ()

    def of_rows(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> np.ndarray:
        """Return the value of each row of a table, ``(rows,)`` float64."""
        if self.name == _CONFIDENCE and _CONFIDENCE not in columns:
            first = columns.index("predicted") + 1
            return np.array([max(row[first:]) for row in rows], np.float64)
        place = columns.index(self.name)
        return np.array([self.classes.index(r[place]) if self.classes else r[place] for r in rows], np.float64)


def target_names(target: Target) -> tuple[str, ...]:
    """Return the names of the classes, labels or values of a target."""
    if target.names:
        return target.names
    return (target.name,) if target.size == 1 else tuple(map(str, range(target.size)))


def prediction_columns(target: Target) -> tuple[str, ...]:
    """Return the names of the predicted columns of a target; see :class:`protgraph.train.Predictions`."""
    names = target_names(target)
    if target.kind == "classification":
        return ("predicted", *(f"p_{name}" for name in names))
    if target.kind == "multilabel":
        return tuple(column for name in names for column in (f"p_{name}", f"predicted_{name}"))
    if target.is_geometric:
        return tuple(f"{name}_{axis}" for name in names for axis in "xyz")
    return names


def choose_value(target: Target, name: str | None = None) -> ValueColumn:
    """Return the value of a residue that is shown on a structure.

    Examples
    --------
    >>> choose_value(Target("site", "node", "multilabel", 1, ("site",))).name
    'p_site'
    """
    if target.level != "node":
        what = {"graph": "protein", "pair": "pair of residues", "edge": "edge"}[target.level]
        raise OptionError(
            f"no value per residue: the model predicts {target.name!r} per {what}. Structure files and attributes need "
            "a value per residue; write the table alone."
        )
    columns = prediction_columns(target)
    allowed = (*columns, *((_CONFIDENCE,) if target.kind == "classification" else ()))
    name = _default(target, columns) if name is None else name
    if name is None or name not in allowed:
        problem = "several values per residue" if name is None else f"no value {name!r}"
        hint = "" if name is None else suggest(name, allowed)
        raise OptionError(f"{problem}. Select one with --value (in Python value=): {', '.join(allowed)}.{hint}")
    is_class = target.kind == "classification" and name == "predicted"
    probabilities = {"classification": not is_class, "multilabel": name.startswith("p_")}
    classes = target_names(target) if is_class else ()
    return ValueColumn(name, is_probability=probabilities.get(target.kind, False), classes=classes)


def _default(target: Target, columns: Sequence[str]) -> str | None:
    if target.kind == "classification":
        return columns[-1] if target.size == 2 else _CONFIDENCE
    return columns[0] if target.size == 1 and not target.is_geometric else None
