"""Label column of a table as it is understood: kind, classes with counts, unknown cells, range of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from protgraph.errors import LabelError, list_first

__all__ = ["LabelColumn", "combine_columns"]

_SHOWN_CLASSES = 12


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """Interpretation of the cells of a label column.

    Parameters
    ----------
    name : str
    kind : {"classification", "multilabel", "regression"}
        Classes, binary labels (0 and 1), or numbers.
    values : ndarray
        ``(R,)`` int64 class of each row with −1 for unknown, or ``(R,)`` float64 with NaN for unknown.
    classes : mapping of str to int
        Classes in order, or the labels "0" and "1", with the number of rows of each; empty for regression.
    unknown : mapping of str to int
        Number of rows of each text that means unknown; "" for blank cells.
    form : str
        How labels are written if they are neither plain numbers nor 0 and 1, e.g. "decimal comma", "'TRUE' is 1".
    """

    name: str
    kind: Literal["classification", "multilabel", "regression"]
    values: np.ndarray = field(repr=False)
    classes: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    form: str = ""

    @property
    def is_known(self) -> np.ndarray:
        """``(R,)`` bool, True for rows with a label."""
        return self.values >= 0 if self.kind == "classification" else ~np.isnan(self.values)

    @property
    def labeled(self) -> int:
        """Number of rows with a label."""
        return int(self.is_known.sum())

    @property
    def range(self) -> tuple[float, float, float] | None:
        """Least, mean and largest number; None for classes and binary labels."""
        if self.kind != "regression":
            return None
        known = self.values[self.is_known]
        return float(known.min()), float(known.mean()), float(known.max())

    def __str__(self) -> str:
        """Return one line, e.g. "site: binary labels, 2 of 40 rows positive; unknown: 3 blank"."""
        if self.kind == "classification":
            counts = list_first([f"{name} {number}" for name, number in self.classes.items()], _SHOWN_CLASSES)
            text = f"{len(self.classes)} classes, {self.labeled} rows ({counts})"
        elif self.kind == "multilabel":
            text = f"binary labels, {self.classes['1']} of {self.labeled} rows positive"
        else:
            low, mean, high = self.range or (0.0, 0.0, 0.0)
            text = f"numbers, {self.labeled} rows from {low:.4g} to {high:.4g}, mean {mean:.4g}"
        text += f" ({self.form})" if self.form else ""
        if self.unknown:
            marks = ", ".join(f"{number} {repr(mark) if mark else 'blank'}" for mark, number in self.unknown.items())
            text += f"; unknown: {marks}"
        return f"{self.name}: {text}"


def combine_columns(columns: Sequence[LabelColumn], where: str) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Return the values, the kind and the class names of a task with these columns.

    Returns
    -------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float32 with NaN for unknown.
    kind : str
        Binary labels together with numbers are regression.
    classes : tuple of str
        Empty for multilabel and regression.
    """
    kinds = [column.kind for column in columns]
    if "classification" in kinds:
        if len(columns) > 1:
            text = columns[kinds.index("classification")].name
            raise LabelError(
                f"{where}: column {text!r} has classes; a task of several columns has numbers. Select one column."
            )
        return columns[0].values, kinds[0], tuple(columns[0].classes)
    values = np.stack([column.values for column in columns], axis=1).astype(np.float32)  # (R, C)
    return values, "multilabel" if set(kinds) == {"multilabel"} else "regression", ()
