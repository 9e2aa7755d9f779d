"""Designs and scores as arrays of a .npz file, residues of all proteins one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from protgraph.design.result import Design, Scores

__all__ = ["write_designs", "write_scores"]


def write_designs(path: str | Path, designs: Sequence[Design]) -> Path:
    """All that is known of designs: S sequences for R residues of P proteins.

    ``aatype`` and, where they were kept, ``log_probs`` and ``probabilities`` ``(S, R, types)``; ``score``,
    ``global_score``, ``recovery`` and, of residues about ligands, ``ligand_score`` ``(S, P)``; ``native_score`` and
    ``native_global_score`` ``(P,)``; ``temperature`` ``(S,)``; ``designed`` and ``native`` (types) ``(R,)``; ``ptr``
    ``(P + 1,)``, where each protein's residues begin; ``proteins`` and ``residues``, their names.
    """
    residues = [d.residues for d in designs]
    arrays = {"aatype": np.concatenate([d.aatype for d in designs], 1)}
    for name in ("log_probs", "probabilities"):
        if all(getattr(d, name) is not None for d in designs):
            arrays[name] = np.concatenate([getattr(d, name) for d in designs], 1)
    of_copies = ["score", "global_score", "recovery"]
    of_copies += ["ligand_score"] * all(d.ligand_score is not None for d in designs)
    arrays |= {name: np.stack([getattr(d, name) for d in designs], 1) for name in of_copies}
    arrays |= {name: np.array([getattr(d, name) for d in designs]) for name in ("native_score", "native_global_score")}
    arrays["designed"] = np.concatenate([d.designed for d in designs])
    arrays["native"] = np.concatenate([r.aatype for r in residues])
    arrays["temperature"] = designs[0].temperature
    return _write(path, arrays, residues)


def write_scores(path: str | Path, scores: Sequence[Scores]) -> Path:
    """Scored sequences one after the other: ``log_probs`` ``(R, types)``, ``aatype`` ``(R,)``, ``ptr``, where each
    begins, ``proteins``, ``sequences`` and ``residues``, their names."""
    arrays = {name: np.concatenate([getattr(s, name) for s in scores]) for name in ("log_probs", "aatype")}
    arrays["sequences"] = np.array([s.name for s in scores])
    return _write(path, arrays, [s.residues for s in scores])


def _write(path: str | Path, arrays: dict[str, np.ndarray], residues: Sequence) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {
        "ptr": np.cumsum([0, *map(len, residues)]),
        "proteins": np.array([r.name for r in residues]),
        "residues": np.concatenate([r.ids for r in residues]),
    }
    np.savez_compressed(path, **arrays, **names)
    return path
