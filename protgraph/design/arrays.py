"""Write designs and scores as arrays of an .npz file; residues of all proteins are concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from protgraph.design.result import Design, Scores
from protgraph.file_io import atomic_write

__all__ = ["write_designs", "write_scores"]


def write_designs(path: str | Path, designs: Sequence[Design]) -> Path:
    """Write the designs of P proteins with R residues in total, S sequences each, and return the path.

    An existing file is replaced.

    =====================================  =================  ========================================================
    array                                  shape              content
    =====================================  =================  ========================================================
    aatype                                 (S, R)             residue types
    log_probs, probabilities               (S, R, types)      where they were kept, see :class:`Design`
    score, global_score, recovery          (S, P)             see :class:`Design`
    ligand_score                           (S, P)             where every design has one
    native_score, native_global_score      (P,)               scores of the native sequence
    temperature                            (S,)               sampling temperature of each sequence
    designed, native                       (R,)               designed residues; types in the structure
    ptr                                    (P + 1,)           first residue of each protein
    proteins, residues                     (P,), (R,)         names
    =====================================  =================  ========================================================
    """
    residues = [d.residues for d in designs]
    arrays = {"aatype": np.concatenate([d.aatype for d in designs], 1)}
    for name in ("log_probs", "probabilities"):
        if all(getattr(d, name) is not None for d in designs):
            arrays[name] = np.concatenate([getattr(d, name) for d in designs], 1)
    per_sequence = ["score", "global_score", "recovery"]
    per_sequence += ["ligand_score"] * all(d.ligand_score is not None for d in designs)
    arrays |= {name: np.stack([getattr(d, name) for d in designs], 1) for name in per_sequence}
    arrays |= {name: np.array([getattr(d, name) for d in designs]) for name in ("native_score", "native_global_score")}
    arrays["designed"] = np.concatenate([d.designed for d in designs])
    arrays["native"] = np.concatenate([r.aatype for r in residues])
    arrays["temperature"] = designs[0].temperature
    return _write(path, arrays, residues)


def write_scores(path: str | Path, scores: Sequence[Scores]) -> Path:
    """Write P scored sequences with R residues in total, and return the path.

    An existing file is replaced.

    =====================================  =================  ========================================================
    array                                  shape              content
    =====================================  =================  ========================================================
    log_probs                              (R, types)         log-probabilities of all types
    aatype                                 (R,)               scored types
    ptr                                    (P + 1,)           first residue of each sequence
    proteins, sequences, residues          (P,), (P,), (R,)   names
    =====================================  =================  ========================================================
    """
    arrays = {name: np.concatenate([getattr(s, name) for s in scores]) for name in ("log_probs", "aatype")}
    arrays["sequences"] = np.array([s.name for s in scores])
    return _write(path, arrays, [s.residues for s in scores])


def _write(path: str | Path, arrays: dict[str, np.ndarray], residues: Sequence) -> Path:
    path = Path(path)
    names = {
        "ptr": np.cumsum([0, *map(len, residues)]),
        "proteins": np.array([r.name for r in residues]),
        "residues": np.concatenate([r.ids for r in residues]),
    }
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays, **names)
    return path
