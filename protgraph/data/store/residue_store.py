"""Residues of many proteins in flat arrays: the part of a graph store from which features and labels are recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from protgraph.data.store.residue_arrays import (
    ATOM,
    LIGAND,
    LIGAND_ATOM,
    RESIDUE,
    residues_from_arrays,
    residues_to_arrays,
)
from protgraph.structure.residues.residues import Residues

__all__ = ["flatten_residues", "slice_residues"]

_PREFIX = "residues."
_LEVELS = {"residue": RESIDUE, "atom": ATOM, "ligand": LIGAND, "ligand_atom": LIGAND_ATOM}
_COUNTS = {level: names[0] for level, names in _LEVELS.items()}  # the array that has a row count at each level


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
