"""Add rows of unresolved residues for models that take them as neighbors, and remove them from results."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import torch
from torch import Tensor

from protgraph.design.constraint import Constraints
from protgraph.design.result import Design
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues, insert_unresolved

__all__ = ["constraints_of_rows", "model_rows", "without_unresolved"]


def model_rows(model: ProteinModel, residues: Residues) -> tuple[Residues, np.ndarray]:
    """Return the residues ``(M,)`` that a model reads, and a mask ``(M,)`` of the given ones ``(N,)``.

    Raises
    ------
    SelectionError
        The model needs unresolved residues, but residue numbers do not ascend.
    """
    if not model.plan.inserts_unresolved:
        return residues, np.ones(len(residues), bool)
    return insert_unresolved(residues)


def constraints_of_rows(constraints: Constraints, given: np.ndarray) -> Constraints:
    """Return constraints of M rows from those of the N ``given (M,)`` ones; the others are not designed."""
    row = torch.from_numpy(np.flatnonzero(given))  # (N,)
    if len(row) == len(given):
        return constraints
    tables = (f.name for f in fields(Constraints) if f.name != "groups")
    changed = {
        name: _spread(table, row, len(given), fill=name == "tie_weight")
        for name in tables
        if (table := getattr(constraints, name)) is not None and (table.dim() == 2 or name not in ("omit", "bias"))
    }
    return replace(constraints, groups=[row[list(group)].tolist() for group in constraints.groups], **changed)


def _spread(table: Tensor, row: Tensor, total: int, *, fill: bool) -> Tensor:
    rows = table.new_full((total, *table.shape[1:]), fill)
    rows[row] = table
    return rows


def without_unresolved(design: Design, residues: Residues, given: np.ndarray) -> Design:
    """Return a design of M rows as one of the given residues ``(N,)``."""
    if given.all():
        return design
    tables = {name: getattr(design, name) for name in ("aatype", "log_probs", "probabilities")}
    kept = {name: table[:, given] for name, table in tables.items() if table is not None}
    return replace(design, residues=residues, designed=design.designed[given], **kept)
