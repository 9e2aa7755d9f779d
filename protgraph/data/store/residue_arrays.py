"""Residues as named arrays, for files and stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues

__all__ = ["ATOM", "LIGAND", "LIGAND_ATOM", "RESIDUE", "residues_from_arrays", "residues_to_arrays"]

RESIDUE = (
    *("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos", "occupancy"),
)
"""Arrays with one row per residue; ``occupancy`` is optional."""
ATOM = ("atom_pos", "atom_name", "atom_element", "atom_residue")
"""Arrays with one row per atom."""
_PREFIX = "ligands."
LIGAND = tuple(_PREFIX + name for name in ("chain", "res_id", "ins_code", "res_name"))
"""Arrays with one row per ligand molecule, if ligands were kept."""
LIGAND_ATOM = tuple(_PREFIX + name for name in ("atom_pos", "atom_name", "atom_element", "atom_molecule"))
"""Arrays with one row per ligand atom, if ligands were kept."""


def residues_to_arrays(residues: Residues) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of residues by name, of the shapes of the attributes, and everything else as plain data."""
    arrays = {name: value for name in (*RESIDUE, *ATOM) if (value := getattr(residues, name)) is not None}
    if residues.ligands is not None:
        arrays |= {_PREFIX + f.name: getattr(residues.ligands, f.name) for f in fields(residues.ligands)}
    plain = {"name": residues.name, "predicted": bool(residues.predicted), "report": residues.report.to_dict()}
    return arrays, plain


def residues_from_arrays(arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> Residues:
    """Return the residues of the arrays, of the same shapes, and of the data of :func:`residues_to_arrays`."""
    own = {name: arrays[name] for name in (*RESIDUE, *ATOM) if name in arrays}
    ligands = None
    if LIGAND[0] in arrays:
        ligands = Ligands(**{name.removeprefix(_PREFIX): arrays[name] for name in (*LIGAND, *LIGAND_ATOM)})
    report = LossReport.from_dict(plain["report"])
    return Residues(name=plain["name"], **own, report=report, predicted=bool(plain["predicted"]), ligands=ligands)
