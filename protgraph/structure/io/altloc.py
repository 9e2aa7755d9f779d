"""Select one conformation per residue from alternate locations."""

# Not biotite: it drops every residue whose altloc ids are digits, e.g. in 1k6p (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

import numpy as np

from protgraph.errors import OptionError, suggest
from protgraph.structure.residues.runs import LEAST_CA_DISTANCE

__all__ = [
    "altloc_mask",
    "check_altloc",
    "group_residues",
    "name_blank_conformations",
    "separate_copies",
]

_FARTHEST = 5.0  # CA atoms of conformations are closer, Å
_DECIMALS = 3  # occupancies have two: later digits of the sums are rounding errors


def check_altloc(altloc: str) -> None:
    """Raise :class:`OptionError` if ``altloc`` is not a policy of :func:`altloc_mask`."""
    if altloc not in ("occupancy", "first") and len(altloc) != 1:
        hint = suggest(altloc, ("occupancy", "first"))
        raise OptionError(f"unknown altloc {altloc!r}.{hint} Choose 'occupancy', 'first' or one altloc id, e.g. 'A'.")


def group_residues(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> np.ndarray:
    """Assign numbers to residues by identity: chain, residue number and insertion code.

    ``chain``, ``res_id``, ``ins_code``: ``(M,)`` identity of each row. Returns ``(M,)`` int64 from 0, equal for rows of
    one residue.
    """
    number = np.zeros(len(res_id), np.int64)
    for column in (chain, res_id, ins_code):
        values, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + code, return_inverse=True)[1]  # stays below M
    return number


def separate_copies(
    residue: np.ndarray, start: np.ndarray, atom_name: np.ndarray, altloc_id: np.ndarray, coord: np.ndarray
) -> np.ndarray:
    """Return numbers of residues in which residues of two chains with one id are not conformations of each other.

    ``residue``, ``start``: ``(R,)`` int64, output of :func:`group_residues` for runs of atoms, and the first atom of
    each run. ``atom_name``, ``altloc_id``: ``(A,)`` str. ``coord``: ``(A, 3)``, Å. Returns ``(R,)`` int64. CA atoms of
    one residue are conformations if both have an altloc id, or else if they are less than 5 Å apart; without any id,
    2.5 Å.
    """
    size = np.bincount(residue)
    if size.max(initial=0) < 2:
        return residue
    alpha = np.flatnonzero(atom_name == "CA")
    run = np.searchsorted(start, alpha, side="right") - 1
    first_atoms: dict[int, list[tuple[int, int]]] = {}  # residue → first CA and number of each of its copies
    separate = residue.copy()
    number = len(size)
    for number_of_run, atom in zip(run.tolist(), alpha.tolist(), strict=True):
        which = int(residue[number_of_run])
        if size[which] < 2:
            continue
        copies = first_atoms.setdefault(which, [(atom, which)])
        joined = [copy for first, copy in copies if _are_conformations(altloc_id, coord, first, atom)]
        if not joined:
            joined = [number]
            copies.append((atom, number))
            number += 1
        separate[number_of_run] = joined[0]
    return separate


def _are_conformations(altloc_id: np.ndarray, coord: np.ndarray, first: int, second: int) -> bool:
    """Return True if two CA atoms of one chain id and number can be of one residue."""
    located = (altloc_id[first] != "", altloc_id[second] != "")
    limit = _FARTHEST if any(located) else LEAST_CA_DISTANCE
    distance = np.linalg.norm(coord[second].astype(np.float64) - coord[first])
    return all(located) or bool(distance < limit)


def altloc_mask(
    altloc_id: np.ndarray,
    occupancy: np.ndarray,
    residue: np.ndarray,
    *,
    altloc: str = "occupancy",
    required: np.ndarray | None = None,
) -> np.ndarray:
    """Return a mask that keeps one conformation per residue, the same for all atoms of the residue.

    ``altloc_id``: ``(A,)`` str, "" for atoms with one location. ``occupancy``: ``(A,)`` float, dimensionless; NaN
    counts as 0. ``residue``: ``(A,)`` int64 from 0, equal for all atoms of a residue, also if its conformations are not
    adjacent in the file or have different residue names. ``altloc``: "occupancy": the id with the highest summed
    occupancy; ties go to the first in the alphabet. "first": the id that comes first in the file. One character: that
    id, or "occupancy" in residues without it. ``required``: ``(A,)`` bool, e.g. True for atoms CA. If some ids of a
    residue have such an atom, the others are not chosen. Returns ``(A,)`` bool, True for atoms to keep; those without
    an id are always kept.

    Examples
    --------
    >>> ids = np.array(["", "A", "B", "A", "B"])
    >>> altloc_mask(ids, np.array([1, 0.4, 0.6, 0.4, 0.6]), np.zeros(5, int)).tolist()
    [True, False, True, False, True]
    """
    check_altloc(altloc)
    keep = altloc_id == ""
    located = np.flatnonzero(~keep)
    if len(located) == 0:
        return keep
    ids, code = np.unique(altloc_id[located], return_inverse=True)  # ids in alphabetical order
    _, first, group = np.unique(residue[located], return_index=True, return_inverse=True)
    pair, shape = group * len(ids) + code, (len(first), len(ids))
    weight = np.nan_to_num(occupancy[located])
    total = np.bincount(pair, weight, minlength=shape[0] * shape[1]).reshape(shape)
    present = np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape) > 0
    if required is not None:
        complete = np.bincount(pair, required[located], minlength=shape[0] * shape[1]).reshape(shape) > 0
        present &= complete | ~complete.any(axis=1, keepdims=True)
    chosen = np.where(present, total.round(_DECIMALS), -np.inf).argmax(axis=1)  # (residues,)
    if altloc == "first":
        chosen = np.where(present[np.arange(shape[0]), code[first]], code[first], chosen)
    elif altloc in ids:
        column = int(np.searchsorted(ids, altloc))
        chosen = np.where(present[:, column], column, chosen)
    keep[located] = code == chosen[group]
    return keep


def name_blank_conformations(
    altloc_id: np.ndarray, atom_name: np.ndarray, res_name: np.ndarray, residue: np.ndarray
) -> np.ndarray:
    """Return altloc ids with " " for atoms without an id that have an alternate location.

    Some programs give only the second conformation an id. An atom without an id is then one of the locations if an atom
    of the same residue and name has an id, or, in such residues, if no atom with an id has its residue name.

    ``altloc_id``, ``atom_name``, ``res_name``: ``(A,)`` str; an empty id means one location. ``residue``: ``(A,)``
    int64, as in :func:`altloc_mask`. Returns ``(A,)`` str.

    Examples
    --------
    >>> names, same = np.array(["N", "CA", "CA"]), np.array(["GLY"] * 3)
    >>> name_blank_conformations(np.array(["", "", "B"]), names, same, np.zeros(3, int)).tolist()
    ['', ' ', 'B']
    """
    has_id = altloc_id != ""
    inside = np.flatnonzero(np.isin(residue, residue[has_id]))
    if has_id[inside].all():
        return altloc_id
    located = inside[has_id[inside]]
    with_name = set(zip(residue[located].tolist(), atom_name[located].tolist(), strict=True))
    with_res_name = set(zip(residue[located].tolist(), res_name[located].tolist(), strict=True))
    blank = inside[~has_id[inside]]
    rows = list(zip(residue[blank].tolist(), atom_name[blank].tolist(), res_name[blank].tolist(), strict=True))
    twice = {number for number, name, _ in rows if (number, name) in with_name}
    chosen = [
        number in twice and ((number, name) in with_name or (number, kind) not in with_res_name)
        for number, name, kind in rows
    ]
    ids = altloc_id.copy()
    ids[blank[np.array(chosen, bool)]] = " "
    return ids
