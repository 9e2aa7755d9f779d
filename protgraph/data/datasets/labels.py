"""Labels before they meet a protein's residues, and their join by identity: chain, author number, insertion code.

Labels never meet residues by their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from protgraph.data.datasets.card import SplitCount
from protgraph.errors import LabelError

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target
    from protgraph.structure.residues.residues import Residues

__all__ = ["Labels", "ProteinLabels", "ResidueLabels", "absent_residues", "align", "count_labels"]

SHOWN = 5  # how many absent residues an error names


class Labels(ABC):
    """The labels of one protein, before they are joined to its residues."""

    @abstractmethod
    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        """Labels as :class:`~protgraph.data.datasets.target.Target` defines them; see :func:`align`."""


@dataclass(frozen=True, eq=False)
class ResidueLabels(Labels):
    """One label a residue, by identity; residues of the protein that are not named have none.

    Parameters
    ----------
    chain, ins_code : ndarray of str
        ``(R,)`` author chain id and insertion code ("" where none).
    res_id : ndarray
        ``(R,)`` int, author residue number.
    values : ndarray
        ``(R,)`` integers for classes (−1: unknown), or ``(R,)`` or ``(R, C)`` floats for labels and values (NaN:
        unknown).
    name : str
        What an error calls the protein: its file.

    Examples
    --------
    >>> import numpy as np
    >>> ResidueLabels(np.array(["A", "A"]), np.array([52, 52]), np.array(["", "A"]), np.array([0, 1])).ids
    ['A:52', 'A:52A']
    """

    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    values: np.ndarray
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _canonical(self.values))
        rows = {len(getattr(self, k)) for k in ("chain", "res_id", "ins_code", "values")}
        if len(rows) > 1:
            raise LabelError(f"labels of {self.name!r}: keys and values have different lengths {sorted(rows)}")
        key = _keys(self)[0]
        first, count = np.unique(key, return_index=True, return_counts=True)[1:]
        if (count > 1).any():
            twice = self.ids[int(first[count > 1].min())]
            raise LabelError(f"labels of {self.name!r} name residue {twice} more than once")

    @property
    def ids(self) -> list[str]:
        """``"A:42"`` for chain A, residue 42; ``"H:100B"`` with insertion code B."""
        return _ids(self.chain, self.res_id, self.ins_code)

    def absent(self, residues: Residues) -> np.ndarray:
        """``(R,)`` bool, which labels name a residue that is not among these."""
        return self._rows(residues) < 0

    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        row = self._rows(residues)
        absent = row < 0
        if strict and absent.any():
            raise absent_residues([(self.name or residues.name, self, absent)])
        unknown = -1 if self.values.dtype.kind == "i" else np.nan
        y = np.full((len(residues), *self.values.shape[1:]), unknown, self.values.dtype)
        y[row[~absent]] = self.values[~absent]
        return y

    def _rows(self, residues: Residues) -> np.ndarray:
        """``(R,)`` row of each label among the residues; −1 where it is not there."""
        if len(residues) == 0:
            return np.full(len(self.values), -1)
        wanted, there = _keys(self, residues)
        order = np.argsort(there, kind="stable")
        at = order[np.searchsorted(there, wanted, sorter=order).clip(max=len(there) - 1)]
        return np.where(there[at] == wanted, at, -1)


@dataclass(frozen=True, eq=False)
class ProteinLabels(Labels):
    """One label for the whole protein.

    Parameters
    ----------
    value : ndarray
        A class number, or ``(C,)`` floats.
    """

    value: np.ndarray | int | float | Sequence[float]

    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        return _canonical(np.asarray(self.value)[None])


def align(labels: Labels, residues: Residues, *, strict: bool = True) -> np.ndarray:
    """Join labels to residues by chain, author number and insertion code.

    Parameters
    ----------
    labels : Labels
        Labels of this protein.
    residues : Residues
        The protein as it was read: nothing hidden yet.
    strict : bool
        Whether a label of an absent residue is an error, or is left out.

    Returns
    -------
    ndarray
        Per residue ``(N,)`` int64 classes with −1 for unknown, or ``(N, C)`` float32 with NaN for unknown; per protein
        the same with one row.

    Raises
    ------
    LabelError
        A label names a residue that is not there, and ``strict``.
    """
    return labels.align(residues, strict=strict)


def absent_residues(found: Sequence[tuple[str, ResidueLabels, np.ndarray]]) -> LabelError:
    """One error for the labels of absent residues: ``(file, labels, which are absent)`` of each file at fault."""
    number = sum(int(absent.sum()) for _, _, absent in found)
    named = [f"{name} {labels.ids[i]}" for name, labels, absent in found for i in np.flatnonzero(absent)[:SHOWN]]
    more = ", …" if number > SHOWN else ""
    noun = "label names a residue that is" if number == 1 else "labels name residues that are"
    return LabelError(
        f"{number} {noun} not there: {', '.join(named[:SHOWN])}{more}\n"
        "Residues are author chain:number+insertion code; what is no amino acid or has no CA is no residue here."
    )


def count_labels(y: np.ndarray, target: Target, residues: int) -> SplitCount:
    """One protein's known labels, ``y`` as :func:`align` gives them, with how many of each class."""
    if target.kind == "classification":
        per_class = np.bincount(y[y >= 0], minlength=target.size)
        return SplitCount(1, residues, int((y >= 0).sum()), tuple(per_class.tolist()))
    known = int((~np.isnan(y)).reshape(len(y), -1).any(1).sum())
    positives = np.nansum(y, axis=0).astype(int).tolist() if target.kind == "multilabel" else ()
    return SplitCount(1, residues, known, tuple(positives))


def _canonical(values: np.ndarray) -> np.ndarray:
    """Integers to int64; floats and booleans to float32 with at least one column."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    values = values.astype(np.float32)
    return values[:, None] if values.ndim == 1 else values


def _ids(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> list[str]:
    return [f"{c}:{r}{i}" for c, r, i in zip(chain, res_id, ins_code, strict=True)]


def _keys(*parts: ResidueLabels | Residues) -> list[np.ndarray]:
    """One int64 a residue, equal for equal identity, unequal otherwise."""
    chain = np.unique(np.concatenate([np.asarray(p.chain, dtype=str) for p in parts]), return_inverse=True)[1]
    ins, code = np.unique(np.concatenate([np.asarray(p.ins_code, dtype=str) for p in parts]), return_inverse=True)
    number = np.concatenate([np.asarray(p.res_id, dtype=np.int64) for p in parts])
    low, high = (number.min(), number.max()) if number.size else (0, 0)
    key = (chain * len(ins) + code) * (high - low + 1) + (number - low)
    return np.split(key, np.cumsum([len(p.res_id) for p in parts])[:-1])
