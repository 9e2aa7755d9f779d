"""Labels of a protein, and their alignment to residues by chain, author number and insertion code, never by order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from protgraph.errors import LabelError, list_first
from protgraph.structure.residues.identity import residue_ids

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = [
    "SHOWN",
    "AbsentLabels",
    "Labels",
    "PairLabels",
    "ProteinLabels",
    "ResidueLabels",
    "absent_residues_error",
    "align",
    "describe_left_out",
    "wrong_types_error",
]

SHOWN = 5
"""Number of absent residues or files listed in an error."""
_FITTING = 0.9  # least share of labels, or of residues, that fit a proposed shift of the numbers


class Labels(ABC):
    """Base class of the labels of one protein."""

    @abstractmethod
    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        """Return the labels in the form of :class:`~protgraph.data.datasets.target.Target`; see :func:`align`."""

    def content(self) -> bytes:
        """Return bytes that are equal for equal labels, for a digest."""
        arrays = [np.asarray(value) for value in vars(self).values()]
        return b"".join(a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in arrays)


@dataclass(frozen=True, eq=False)
class ResidueLabels(Labels):
    """Labels per residue, keyed by residue identifier; other residues of the protein have unknown labels.

    Parameters
    ----------
    chain, ins_code : ndarray of str
        ``(R,)`` author chain id and insertion code ("" if none).
    res_id : ndarray
        ``(R,)`` int, author residue number.
    values : ndarray
        ``(R,)`` integers for classification (−1: unknown), or ``(R,)`` or ``(R, C)`` floats for multilabel and
        regression (NaN: unknown).
    name : str
        File name, for error messages.
    letters : ndarray of str, optional
        ``(R,)`` one-letter code of each residue, which must be its type; "X" or "" for any. None does not compare.
    leaves_out_absent : bool
        True leaves out the labels of absent residues. False does so only for labels of the whole sequence, see
        :meth:`is_whole_sequence`.

    Raises
    ------
    LabelError
        If the arrays differ in length or a residue is labeled twice.

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
    letters: np.ndarray | None = None
    leaves_out_absent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _canonical(self.values))
        rows = {len(getattr(self, k)) for k in ("chain", "res_id", "ins_code", "values")}
        if len(rows) > 1:
            raise LabelError(f"labels of {self.name!r}: keys and values have different lengths: {sorted(rows)}")
        key = _keys(self)[0]
        first, count = np.unique(key, return_index=True, return_counts=True)[1:]
        if (count > 1).any():
            repeated = self.ids[int(first[count > 1].min())]
            raise LabelError(f"labels of {self.name!r}: residue {repeated} is labeled more than once")

    @property
    def ids(self) -> list[str]:
        """Residue identifiers: ``"A:42"``, or ``"H:100B"`` with insertion code B."""
        return residue_ids(self.chain, self.res_id, self.ins_code)

    def absent(self, residues: Residues) -> np.ndarray:
        """Return ``(R,)`` bool, True for labels of residues that are absent."""
        return self._rows(residues) < 0

    def is_whole_sequence(self, residues: Residues) -> bool:
        """Return True if labels are of the whole sequence of their chains, unresolved residues included.

        Every residue of these chains has a label, and the numbers of absent residues continue those of residues.
        """
        for name in np.unique(self.chain):
            numbers = np.unique(self.res_id[self.chain == name])
            resolved = residues.res_id[residues.chain == name]
            if not len(resolved) or not np.isin(resolved, numbers).all():
                return False
            run = np.cumsum(np.diff(numbers, prepend=numbers[0]) > 1)  # consecutive numbers have the same
            if len(np.unique(run[np.isin(numbers, resolved)])) <= run[-1]:
                return False
        is_own = np.isin(residues.chain, np.unique(self.chain))
        required = residue_ids(residues.chain[is_own], residues.res_id[is_own], residues.ins_code[is_own])
        return set(required) <= set(self.ids)

    def wrong_types(self, residues: Residues) -> np.ndarray:
        """Return ``(R,)`` bool, True for labels of residues of another type than the letter of the table."""
        if self.letters is None or len(residues) == 0:
            return np.zeros(len(self.values), bool)
        row = self._rows(residues)
        letters = np.array(list(residues.sequence))[row]
        is_known = (row >= 0) & (letters != "X") & ~np.isin(self.letters, ("X", ""))
        return is_known & (letters != self.letters)

    def shifts(self, residues: Residues) -> dict[str, int]:
        """Return, for each chain, the number to add to all residue numbers so that they fit the structure.

        Chains whose numbers fit as they are, or fit with several such numbers, are left out.
        """
        shift_of_chain = {}
        for name in np.unique(self.chain).tolist():
            is_labeled, is_resolved = self.chain == name, residues.chain == name
            letters = None if self.letters is None else self.letters[is_labeled]
            types = np.array(list(residues.sequence))[is_resolved]
            shift = _best_shift(self.res_id[is_labeled], letters, residues.res_id[is_resolved], types)
            if shift:
                shift_of_chain[name] = shift
        return shift_of_chain

    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        """Return one row per residue; see :func:`align`."""
        row = self._rows(residues)
        absent = row < 0
        if strict and absent.any():
            raise absent_residues_error([(self.name or residues.name, self, absent)])
        unknown = -1 if self.values.dtype.kind == "i" else np.nan
        y = np.full((len(residues), *self.values.shape[1:]), unknown, self.values.dtype)
        y[row[~absent]] = self.values[~absent]
        return y

    def _rows(self, residues: Residues) -> np.ndarray:
        """Return ``(R,)`` the row of each label among the residues; −1 if the residue is absent."""
        if len(residues) == 0:
            return np.full(len(self.values), -1)
        label_key, residue_key = _keys(self, residues)
        order = np.argsort(residue_key, kind="stable")
        position = np.searchsorted(residue_key, label_key, sorter=order)
        row = order[position.clip(max=len(order) - 1)]
        is_present = residue_key[row] == label_key
        return np.where(is_present, row, -1)


AbsentLabels = tuple[str, ResidueLabels, np.ndarray]
"""File, labels, and ``(R,)`` bool, True for labels of absent residues."""


@dataclass(frozen=True, eq=False)
class ProteinLabels(Labels):
    """Label of the whole protein.

    Parameters
    ----------
    value : ndarray
        Class number, or ``(C,)`` floats.
    """

    value: np.ndarray | int | float | Sequence[float]

    def align(self, residues: Residues, *, strict: bool = True) -> np.ndarray:
        """Return one row; see :func:`align`."""
        return _canonical(np.asarray(self.value)[None])


def align(labels: Labels, residues: Residues, *, strict: bool = True) -> np.ndarray:
    """Align labels to residues by chain, author number and insertion code.

    Parameters
    ----------
    labels : Labels
        Labels of this protein.
    residues : Residues
        The protein as read, with nothing masked.
    strict : bool
        Raise if a labeled residue is absent; otherwise ignore its label.

    Returns
    -------
    ndarray
        Labels per residue: ``(N,)`` int64 with −1 for unknown, or ``(N, C)`` float32 with NaN for unknown. Labels per
        protein: the same with one row.

    Raises
    ------
    LabelError
        If a labeled residue is absent and ``strict``.
    """
    return labels.align(residues, strict=strict)


def _best_shift(labeled: np.ndarray, letters: np.ndarray | None, resolved: np.ndarray, types: np.ndarray) -> int | None:
    """Return the number that moves most labels to a residue of their type; None if there is none, or several.

    ``labeled``: ``(R,)`` int64, numbers of labels. ``letters``: ``(R,)`` str, types of labels. ``resolved``: ``(N,)``
    int64, numbers of residues. ``types``: ``(N,)`` str, types of residues.
    """
    if not len(labeled) or not len(resolved):
        return None
    pairs = resolved[:, None] - labeled  # (N, R) shift that moves a label to a residue
    if letters is not None:
        pairs = pairs[types[:, None] == letters]
    shifts, counts = np.unique(pairs, return_counts=True)
    if not len(counts):
        return None
    best = counts.max()
    best_shifts = shifts[counts == best]
    fits_without_shift = counts[shifts == 0].sum()
    is_better = best > fits_without_shift
    fits_most = best >= _FITTING * min(len(labeled), len(resolved))
    if is_better and fits_most and len(best_shifts) == 1:
        return int(best_shifts[0])
    return None


def describe_left_out(faults: Sequence[AbsentLabels]) -> str:
    """Return the note on labels that were left out, from ``(file, labels, (R,) absent)`` of each file."""
    number, named = _count_absent(faults)
    noun = "label of a residue" if number == 1 else "labels of residues"
    return f"{number} {noun} without coordinates left out: {list_first(named, SHOWN)}"


def _count_absent(faults: Sequence[AbsentLabels]) -> tuple[int, list[str]]:
    """Return the number of absent labels, and the names of the first of each file."""
    number = 0
    named = []
    for name, labels, absent in faults:
        number += int(absent.sum())
        for i in np.flatnonzero(absent)[: SHOWN + 1]:
            named.append(f"{name} {labels.ids[i]}")
    return number, named


def wrong_types_error(
    faults: Sequence[tuple[str, ResidueLabels, Residues, np.ndarray]],
) -> LabelError:
    """Create one error for labels of residues of another type, from ``(file, labels, residues, (R,) wrong)``."""
    number = 0
    named: list[str] = []
    shifts: dict[str, int] = {}
    for name, labels, residues, wrong in faults:
        number += int(wrong.sum())
        types = dict(zip(residues.ids, residues.sequence, strict=True))
        for i in np.flatnonzero(wrong)[: SHOWN + 1]:
            residue_id = labels.ids[i]
            expected = "" if labels.letters is None else labels.letters[i]
            named.append(f"{name} {residue_id} is {types[residue_id]}, not {expected}")
        for chain, shift in labels.shifts(residues).items():
            shifts[f"{name} {chain}"] = shift
    noun = "label is for a residue" if number == 1 else "labels are for residues"
    return LabelError(f"{number} {noun} of another type: {list_first(named, SHOWN)}.{describe_shifts(shifts)}")


def describe_shifts(shifts: Mapping[str, int]) -> str:
    """Return the sentence on numbers that fit if they are shifted, by file and chain; empty without any."""
    if not shifts:
        return ""
    if len(set(shifts.values())) == 1:
        return f"\nThe numbers fit with {next(iter(shifts.values())):+d}: correct the column of residue numbers."
    shown = list_first([f"{place} {shift:+d}" for place, shift in shifts.items()], SHOWN)
    return f"\nThe numbers fit with a shift: {shown}. Correct the column of residue numbers."


def absent_residues_error(faults: Sequence[AbsentLabels], shifts: Mapping[str, int] | None = None) -> LabelError:
    """Create one error for all labels of absent residues, from ``(file, labels, (R,) absent)`` of each file.

    ``shifts`` are the results of :meth:`ResidueLabels.shifts` by file and chain.
    """
    number, named = _count_absent(faults)
    noun = "label refers to an absent residue" if number == 1 else "labels refer to absent residues"
    return LabelError(
        f"{number} {noun}: {list_first(named, SHOWN)}\n"
        "Residues are identified by author chain:number+insertion code; only amino acids with a CA atom are residues. "
        "'protgraph data inspect' lists all of them. "
        f"Use --leave-out-absent (leave_out_absent=) for unresolved residues.{describe_shifts(shifts or {})}"
    )


def _canonical(values: np.ndarray) -> np.ndarray:
    """Convert integers to int64, floats and booleans to float32 with at least one column."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    values = values.astype(np.float32)
    return values[:, None] if values.ndim == 1 else values


def _keys(*tables: ResidueLabels | Residues) -> list[np.ndarray]:
    """Return one int64 per residue, equal if and only if the identifiers are equal."""
    chains = np.concatenate([np.asarray(table.chain, dtype=str) for table in tables])
    codes = np.concatenate([np.asarray(table.ins_code, dtype=str) for table in tables])
    number = np.concatenate([np.asarray(table.res_id, dtype=np.int64) for table in tables])
    _, chain = np.unique(chains, return_inverse=True)
    distinct_codes, code = np.unique(codes, return_inverse=True)
    if number.size:
        number = number - number.min()
    num_numbers = number.max(initial=0) + 1
    key = (chain * len(distinct_codes) + code) * num_numbers + number
    ends = np.cumsum([len(table.res_id) for table in tables])
    return np.split(key, ends[:-1])


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
        number = groups.align(residues, strict=False)  # (N,) number of the labeled residue, −1 for others
        is_labeled = number >= 0

        # pairs of different groups are known
        group = np.where(is_labeled, self.group[number], -1)
        have_groups = (group[:, None] >= 0) & (group >= 0)
        is_known = have_groups & (group[:, None] != group)
        y = np.where(is_known, 0, np.nan).astype(np.float32)  # (N, N)

        # positive pairs, in both orders
        residue_of = np.full(len(self.group), -1)  # of each labeled residue
        residue_of[number[is_labeled]] = np.flatnonzero(is_labeled)
        i, j = residue_of[self.positive]
        is_present = (i >= 0) & (j >= 0)
        i = i[is_present]
        j = j[is_present]
        y[i, j] = 1
        y[j, i] = 1
        return y.reshape(-1, 1)

    def _groups(self) -> ResidueLabels:
        """Return the numbers of the labeled residues as labels of residues."""
        if len(self.group) != len(self.chain):
            raise LabelError(f"labels of {self.name!r}: {len(self.chain)} residues, {len(self.group)} groups")
        numbers = np.arange(len(self.chain))
        return ResidueLabels(self.chain, self.res_id, self.ins_code, numbers, name=self.name)
