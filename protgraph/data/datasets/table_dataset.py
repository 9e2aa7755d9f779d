"""Base class of datasets whose labels are rows of a table: one row per residue or one per protein."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels

__all__ = ["LabelRows", "TableDataset"]


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels of a task as rows of a table.

    Parameters
    ----------
    values : ndarray
        ``(T,)`` classes or ``(T, C)``, in the form of the target; −1 or NaN for unknown.
    rows : mapping of str to ndarray or slice
        Example id → its rows.
    keys : tuple of ndarray
        Chain, number and insertion code of the residue of each row, ``(T,)`` each; empty for labels per protein.
    letters : ndarray, optional
        ``(T,)`` str, the residue type that each row is for.
    leaves_out_absent : bool
        Leave out labels of residues that a structure does not have.
    """

    values: np.ndarray
    rows: Mapping[str, np.ndarray | slice]
    keys: tuple[np.ndarray, ...] = ()
    letters: np.ndarray | None = None
    leaves_out_absent: bool = False

    def of(self, example: Example) -> Labels:
        """Return the labels of an example."""
        rows = self.rows[example.id]
        if not self.keys:
            return ProteinLabels(self.values[rows][0])
        chain, number, ins_code = (key[rows] for key in self.keys)
        letters = None if self.letters is None else self.letters[rows]
        return ResidueLabels(
            chain,
            number,
            ins_code,
            self.values[rows],
            name=example.path.name,
            letters=letters,
            leaves_out_absent=self.leaves_out_absent,
        )


class TableDataset(Dataset):
    """Dataset of structures and a table of labels; subclasses implement :meth:`examples` and :meth:`label_rows`."""

    @abstractmethod
    def label_rows(self, task: str) -> LabelRows | None:
        """Return the labels of all examples of a task; None if the task computes them."""

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None if the task computes them."""
        self._task(task)
        rows = self.label_rows(task)
        return None if rows is None else rows.of(example)
