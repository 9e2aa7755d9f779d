"""Select one conformation per residue from alternate locations.

Not biotite: its choice drops every residue whose altloc ids are digits, e.g. in 1k6p (biotite 1.6.0, 2026-11-22).
"""

from __future__ import annotations

import numpy as np

from protgraph.errors import OptionError, suggest

__all__ = ["altloc_mask", "check_altloc", "group_residues"]

_DECIMALS = 3  # occupancies have two: later digits of the sums are rounding errors


def check_altloc(altloc: str) -> None:
    """Raise :class:`OptionError` if ``altloc`` is not a policy of :func:`altloc_mask`."""
    if altloc not in ("occupancy", "first") and len(altloc) != 1:
        hint = suggest(altloc, ("occupancy", "first"))
        raise OptionError(f"unknown altloc {altloc!r}.{hint} Choose 'occupancy', 'first' or one altloc id, e.g. 'A'.")


def group_residues(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> np.ndarray:
    """Assign numbers to residues by identity: chain, residue number and insertion code.

    Parameters
    ----------
    chain, res_id, ins_code : ndarray
        ``(M,)`` identity of each row.

    Returns
    -------
    ndarray
        ``(M,)`` int64 from 0, equal for rows of one residue.
    """
    number = np.zeros(len(res_id), np.int64)
    for column in (chain, res_id, ins_code):
        values, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + code, return_inverse=True)[1]  # stays below M
    return number


def altloc_mask(
    altloc_id: np.ndarray, occupancy: np.ndarray, residue: np.ndarray, *, altloc: str = "occupancy"
) -> np.ndarray:
    """Return a mask that keeps one conformation per residue, the same for all atoms of the residue.

    Parameters
    ----------
    altloc_id : ndarray
        ``(A,)`` str, "" for atoms with one location.
    occupancy : ndarray
        ``(A,)`` float, dimensionless; NaN counts as 0.
    residue : ndarray
        ``(A,)`` int64 from 0, equal for all atoms of a residue, also if its conformations are not adjacent in the file
        or have different residue names.
    altloc : str
        "occupancy": the id with the highest summed occupancy; ties go to the first in the alphabet. "first": the id
        that comes first in the file. One character: that id, or "occupancy" in residues without it.

    Returns
    -------
    ndarray
        ``(A,)`` bool, True for atoms to keep; those without an id are always kept.

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
    chosen = np.where(present, total.round(_DECIMALS), -np.inf).argmax(axis=1)  # (residues,)
    if altloc == "first":
        chosen = code[first]
    elif altloc in ids:
        column = int(np.searchsorted(ids, altloc))
        chosen = np.where(present[:, column], column, chosen)
    keep[located] = code == chosen[group]
    return keep
