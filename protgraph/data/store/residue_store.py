"""Residues as named arrays, of one protein or of many in flat arrays, for files and stores.

A graph store keeps them beside the graphs, so that features and labels can be recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues

__all__ = ["flatten_residues", "residues_from_arrays", "residues_to_arrays", "slice_residues"]

RESIDUE = (
    *("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos", "occupancy"),
)
"""Arrays with one row per residue; ``occupancy`` is optional."""
ATOM = ("atom_pos", "atom_name", "atom_element", "atom_residue")
"""Arrays with one row per atom."""
_LIGANDS = "ligands."
LIGAND = tuple(_LIGANDS + name for name in ("chain", "res_id", "ins_code", "res_name"))
"""Arrays with one row per ligand molecule, if ligands were kept."""
LIGAND_ATOM = tuple(_LIGANDS + name for name in ("atom_pos", "atom_name", "atom_element", "atom_molecule"))
"""Arrays with one row per ligand atom, if ligands were kept."""
_PREFIX = "residues."
_LEVELS = {"residue": RESIDUE, "atom": ATOM, "ligand": LIGAND, "ligand_atom": LIGAND_ATOM}
_COUNTS = {level: names[0] for level, names in _LEVELS.items()}  # the array that has a row count at each level


def residues_to_arrays(residues: Residues) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of residues by name, of the shapes of the attributes, and everything else as plain data."""
    arrays = {name: value for name in (*RESIDUE, *ATOM) if (value := getattr(residues, name)) is not None}
    if residues.ligands is not None:
        arrays |= {_LIGANDS + f.name: getattr(residues.ligands, f.name) for f in fields(residues.ligands)}
    plain = {"name": residues.name, "predicted": bool(residues.predicted), "report": residues.report.to_dict()}
    return arrays, plain


def residues_from_arrays(arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> Residues:
    """Return the residues of the arrays, of the same shapes, and of the data of :func:`residues_to_arrays`."""
    own = {name: arrays[name] for name in (*RESIDUE, *ATOM) if name in arrays}
    ligands = None
    if LIGAND[0] in arrays:
        ligands = Ligands(**{name.removeprefix(_LIGANDS): arrays[name] for name in (*LIGAND, *LIGAND_ATOM)})
    report = LossReport.from_dict(plain["report"])
    return Residues(name=plain["name"], **own, report=report, predicted=bool(plain["predicted"]), ligands=ligands)


def flatten_residues(residues: Sequence[Residues]) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Join the arrays of proteins.

    Returns
    -------
    dict of str to ndarray
        Joined arrays and ``(P + 1,)`` offsets of each level, by file name.
    list of dict
        Plain data of each protein, with the names of its arrays.
    """
    parts = [residues_to_arrays(r) for r in residues]
    joined: dict[str, np.ndarray] = {}
    for level, names in _LEVELS.items():
        rows = [len(arrays.get(_COUNTS[level], ())) for arrays, _ in parts]
        if level.startswith("ligand") and not any(names[0] in arrays for arrays, _ in parts):
            continue
        joined[f"{_PREFIX}ptr_{level}"] = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        for name in names:
            like = next((arrays[name] for arrays, _ in parts if name in arrays), None)
            if like is not None:
                filled = [_rows(arrays.get(name), n, like) for (arrays, _), n in zip(parts, rows, strict=True)]
                joined[_PREFIX + name] = np.concatenate(filled)
    return joined, [{**plain, "arrays": sorted(arrays)} for arrays, plain in parts]


def slice_residues(arrays: Mapping[str, np.ndarray], described: Mapping[str, Any], i: int) -> Residues:
    """Return protein i of the joined arrays, ``(M, …)`` each, as copies; ``described`` is its plain data."""
    own: dict[str, np.ndarray] = {}
    for level, names in _LEVELS.items():
        if f"{_PREFIX}ptr_{level}" in arrays:
            begin, end = arrays[f"{_PREFIX}ptr_{level}"][i : i + 2].tolist()
            chosen = [name for name in names if name in described["arrays"]]
            own |= {name: arrays[_PREFIX + name][begin:end].copy() for name in chosen}
    return residues_from_arrays(own, described)


def _rows(array: np.ndarray | None, n: int, like: np.ndarray) -> np.ndarray:
    """Return the array; zeros for a protein that lacks it."""
    return np.zeros((n, *like.shape[1:]), like.dtype) if array is None else array
