"""Rows without coordinates for residues that are missing from a chain's numbering, for models that need them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from protgraph_plugins.design.results import Design

from protgraph.errors import SelectionError
from protgraph.model import ProteinModel
from protgraph.structure import Residues
from protgraph.structure.residues import THREE_LETTER, UNKNOWN

__all__ = ["insert_unresolved", "model_rows", "without_unresolved"]


def model_rows(model: ProteinModel, residues: Residues) -> tuple[Residues, np.ndarray]:
    """Return the residues ``(M,)`` that a model reads, and a mask ``(M,)`` of those ``(N,)`` that are present.

    Raises
    ------
    SelectionError
        The model needs unresolved residues, but residue numbers do not ascend.
    """
    if not model.plan.inserts_unresolved:
        return residues, np.ones(len(residues), bool)
    return insert_unresolved(residues)


def without_unresolved(design: Design, residues: Residues, present: np.ndarray) -> Design:
    """Return a design of M rows as one of the residues ``(N,)`` in the mask ``present (M,)``."""
    if present.all():
        return design
    tables = {name: getattr(design, name) for name in ("aatype", "log_probs", "probabilities")}
    tables = {name: table[:, present] for name, table in tables.items() if table is not None}
    return replace(design, residues=residues, designed=design.designed[present], **tables)


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
    present : ndarray
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
    >>> filled, present = insert_unresolved(part)
    >>> len(part), len(filled), np.flatnonzero(~present).tolist(), filled.sequence[9]
    (75, 76, [9], 'X')
    """
    start = np.flatnonzero(np.append(True, residues.chain[1:] != residues.chain[:-1]))
    _check_order(residues, start)
    missing = np.maximum(np.diff(residues.res_id, append=0) - 1, 0)  # (N,) rows after each residue
    missing[np.append(start[1:], len(residues))[: len(start)] - 1] = 0
    index = np.repeat(np.arange(len(residues)), 1 + missing)  # (M,) the last present residue
    row = np.cumsum(1 + missing) - 1 - missing  # (N,) new row of each residue
    present = np.zeros(len(index), bool)
    present[row] = True
    after = np.arange(len(index)) - row[index]
    first = row[start]
    arrays = {
        name: np.where(present, getattr(residues, name)[index], empty)
        for name, empty in (("ins_code", ""), ("res_name", THREE_LETTER[UNKNOWN]), ("aatype", UNKNOWN))
    }
    for name, empty in (("pos", np.nan), ("backbone", np.nan), ("b_factor", 0.0), ("occupancy", 1.0)):
        values = getattr(residues, name)
        if values is not None:
            arrays[name] = values[index]
            arrays[name][~present] = empty
    filled = replace(
        residues,
        chain=residues.chain[index],
        res_id=residues.res_id[index] + after,
        seq_pos=np.arange(len(index)) - np.repeat(first, np.diff(first, append=len(index))),
        atom_residue=row[residues.atom_residue],
        **arrays,
    )
    return filled, present


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
