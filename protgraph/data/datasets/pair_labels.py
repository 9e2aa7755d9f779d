"""Yes/no labels of pairs of residues: those of residues of two groups, e.g. of two partners of a complex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.labels import Labels, ResidueLabels, absent_residues_error
from protgraph.errors import LabelError
from protgraph.structure.residues.residues import Residues

__all__ = ["PairLabels"]


@dataclass(frozen=True, eq=False)
class PairLabels(Labels):
    """Labels of the pairs of residues of different groups; all other pairs are unknown.

    Parameters
    ----------
    chain, ins_code : ndarray of str
        ``(R,)`` author chain id and insertion code of the labeled residues.
    res_id : ndarray
        ``(R,)`` int, author residue number.
    group : ndarray
        ``(R,)`` int, group of each residue.
    positive : ndarray
        ``(2, P)`` int64, pairs of labeled residues with the label 1, in either order; all other pairs of different
        groups have the label 0.
    name : str
        File name, for error messages.

    Raises
    ------
    LabelError
        The arrays differ in length, a residue is labeled twice, or a positive pair is of one group.

    Examples
    --------
    >>> chain, number, code = np.array(["A", "A", "B"]), np.array([1, 2, 1]), np.array(["", "", ""])
    >>> PairLabels(chain, number, code, np.array([0, 0, 1]), np.array([[1], [2]])).positive.tolist()
    [[1], [2]]
    """

    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    group: np.ndarray
    positive: np.ndarray
    name: str = ""

    def __post_init__(self) -> None:
        self._groups()  # checks keys
        first, second = self.group[self.positive]
        if (first == second).any():
            ids = self._groups().ids
            a, b = self.positive[:, int((first == second).argmax())]
            raise LabelError(
                f"labels of {self.name!r}: the pair {ids[a]}, {ids[b]} is of one group. Allowed: two groups."
            )

    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        """Return the labels of all ordered pairs, row-major, ``(N², 1)`` float32, NaN for unknown.

        Raises
        ------
        LabelError
            A labeled residue is absent and ``strict``.
        """
        groups = self._groups()
        absent = groups.absent(residues)
        if strict and absent.any():
            raise absent_residues_error([(self.name or residues.name, groups, absent)])
        rows = groups.align(residues, strict=False)  # (N,) number of the labeled residue, −1 for others
        place = np.full(len(self.group), -1)
        place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        group = np.where(rows >= 0, self.group[rows], -1)
        known = (group[:, None] >= 0) & (group >= 0) & (group[:, None] != group)
        y = np.where(known, 0, np.nan).astype(np.float32)  # (N, N)
        i, j = place[self.positive]
        present = (i >= 0) & (j >= 0)
        y[i[present], j[present]] = y[j[present], i[present]] = 1
        return y.reshape(-1, 1)

    def _groups(self) -> ResidueLabels:
        """Return the numbers of the labeled residues as labels of residues."""
        if len(self.group) != len(self.chain):
            raise LabelError(f"labels of {self.name!r}: {len(self.chain)} residues, {len(self.group)} groups")
        numbers = np.arange(len(self.chain))
        return ResidueLabels(self.chain, self.res_id, self.ins_code, numbers, name=self.name)
