"""Rows without coordinates for the residues that are missing from a chain's numbering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph.errors import SelectionError
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN
from protgraph.structure.residues.identity import run_lengths
from protgraph.structure.residues.residues import Residues

__all__ = ["insert_unresolved"]


def insert_unresolved(residues: Residues) -> tuple[Residues, np.ndarray]:
    """Insert a residue of unknown type without coordinates for each missing number between the ends of a chain.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    residues : Residues
        M ≥ N residues. ``seq_pos`` counts the rows of each chain from 0, so each missing number counts once, also
        between bonded residues. ``pos`` and ``backbone`` of inserted residues are NaN.
    given : ndarray
        ``(M,)`` bool, True for the N residues of the input, which keep their order.

    Raises
    ------
    SelectionError
        Residues of a chain are not in ascending order of number and insertion code, or a chain is not contiguous.

    Examples
    --------
    >>> import numpy as np, protgraph as pg
    >>> whole = pg.clean(pg.load_structure("datasets/pdb_core/structures/1ubq.bcif"))
    >>> part = whole.select(np.arange(len(whole)) != 9)
    >>> filled, given = insert_unresolved(part)
    >>> len(part), len(filled), np.flatnonzero(~given).tolist(), filled.sequence[9]
    (75, 76, [9], 'X')
    """
    start = np.flatnonzero(np.append(True, residues.chain[1:] != residues.chain[:-1]))
    _check_order(residues, start)
    missing = np.maximum(np.diff(residues.res_id, append=0) - 1, 0)  # (N,) rows after each residue
    missing[np.append(start[1:], len(residues))[: len(start)] - 1] = 0
    index = np.repeat(np.arange(len(residues)), 1 + missing)  # (M,) the last given residue
    row = np.cumsum(1 + missing) - 1 - missing  # (N,) new row of each residue
    given = np.zeros(len(index), bool)
    given[row] = True
    after = np.arange(len(index)) - row[index]
    first = row[start]
    arrays = {
        name: np.where(given, getattr(residues, name)[index], empty)
        for name, empty in (("ins_code", ""), ("res_name", THREE_LETTER[UNKNOWN]), ("aatype", UNKNOWN))
    }
    for name, empty in (("pos", np.nan), ("backbone", np.nan), ("b_factor", 0.0), ("occupancy", 1.0)):
        values = getattr(residues, name)
        if values is not None:
            arrays[name] = values[index]
            arrays[name][~given] = empty
    filled = replace(
        residues,
        chain=residues.chain[index],
        res_id=residues.res_id[index] + after,
        seq_pos=np.arange(len(index)) - np.repeat(first, run_lengths(first, len(index))),
        atom_residue=row[residues.atom_residue],
        **arrays,
    )
    return filled, given


def _check_order(residues: Residues, start: np.ndarray) -> None:
    """Raise unless chains are contiguous and their residues ascend."""
    if len(start) != len(residues.chain_names):
        raise SelectionError(
            f"chains are not contiguous: {residues.name}. Missing residues are inserted into contiguous chains only. "
            "Sort the file by chain."
        )
    number, code = residues.res_id, residues.ins_code
    ascending = (number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & (code[1:] > code[:-1]))
    ascending[start[1:] - 1] = True
    if not ascending.all():
        row = int(np.flatnonzero(~ascending)[0]) + 1
        raise SelectionError(
            f"residue numbers do not ascend: {residues.ids[row]} after {residues.ids[row - 1]} ({residues.name}). "
            "Missing residues are inserted by their numbers. Renumber the chain."
        )
