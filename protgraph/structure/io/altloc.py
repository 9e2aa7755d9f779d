"""One conformation of every residue where a file gives alternate locations."""

from __future__ import annotations

import numpy as np

from protgraph.errors import OptionError

__all__ = ["altloc_mask", "check_altloc", "group_residues"]

_DECIMALS = 3  # occupancies have two: sums that differ later differ by rounding only


def check_altloc(altloc: str) -> None:
    """Raise :class:`OptionError` where ``altloc`` is no policy of :func:`altloc_mask`."""
    if altloc not in ("occupancy", "first") and len(altloc) != 1:
        raise OptionError(f"altloc {altloc!r} is none of 'occupancy', 'first' or one altloc id such as 'A'")


def group_residues(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> np.ndarray:
    """Number residues by identity: equal numbers where chain, number and insertion code are equal.

    Parameters
    ----------
    chain, res_id, ins_code : ndarray
        ``(M,)`` identity of each row.

    Returns
    -------
    ndarray
        ``(M,)`` int64, from 0.
    """
    number = np.zeros(len(res_id), np.int64)
    for column in (chain, res_id, ins_code):
        values, code = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + code, return_inverse=True)[1]  # stays below M
    return number


def altloc_mask(
    altloc_id: np.ndarray, occupancy: np.ndarray, residue: np.ndarray, *, altloc: str = "occupancy"
) -> np.ndarray:
    """Atoms of one conformation a residue, the same for all of its atoms.

    Parameters
    ----------
    altloc_id : ndarray
        ``(A,)`` str, "" where the atom has one location.
    occupancy : ndarray
        ``(A,)`` float, dimensionless; NaN counts as 0.
    residue : ndarray
        ``(A,)`` int64 from 0, equal for all atoms of a residue, also where its conformations stand apart in the
        file or have different residue names.
    altloc : str
        "occupancy": the id with the highest summed occupancy, among equals the first in the alphabet. "first":
        the id that comes first in the file. One character: that id, "occupancy" where a residue lacks it.

    Returns
    -------
    ndarray
        ``(A,)`` bool, the atoms to keep; those without an id always are.

    Notes
    -----
    biotite 1.6's own choice drops every residue whose ids are digits (1k6p), so it is not used.

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
        wanted = int(np.searchsorted(ids, altloc))
        chosen = np.where(present[:, wanted], wanted, chosen)
    keep[located] = code == chosen[group]
    return keep
