"""Small proteins with whole side chains, so packed that residues interact in every way; no file."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from protgraph.structure import Residues
from protgraph.structure.residues.alphabet import THREE_LETTER
from protgraph.testing.protein_fixtures import make_protein

__all__ = ["packed_proteins"]

_BACKBONE = ("N", "CA", "C", "O")
_DISULFIDE = 2.04  # Å, SG–SG


@cache
def packed_proteins() -> tuple[Residues, ...]:
    """One protein of two chains (26 and 20 residues) and one of a single chain (14), the same in every process.

    The seeds are some with which every interaction is there. One disulfide bond is made by moving a sulfur.
    """
    return _packed((26, 20), seed=156), _packed((14,), seed=8)


def _packed(lengths: tuple[int, ...], *, seed: int) -> Residues:
    made = make_protein(lengths, seed=seed)
    rng = np.random.default_rng(seed)
    aatype = np.resize(rng.permutation(20), len(made))  # every type, in chains long enough
    names = [THREE_LETTER[t] for t in aatype]
    parts = [_with_sidechain(name, backbone) for name, backbone in zip(names, made.backbone, strict=True)]
    made = replace(
        made,
        aatype=aatype,
        res_name=np.array(names),
        atom_name=np.concatenate([name for name, _ in parts]),
        atom_pos=np.concatenate([pos for _, pos in parts]),
        atom_element=np.concatenate([[n[0] for n in name] for name, _ in parts]),
        atom_residue=np.repeat(np.arange(len(made)), [len(name) for name, _ in parts]),
    )
    sulfur = np.flatnonzero((made.atom_name == "SG") & (made.res_name[made.atom_residue] == "CYS"))
    if len(sulfur) > 1:
        way = made.atom_pos[sulfur[1]] - made.atom_pos[sulfur[0]]
        made.atom_pos[sulfur[1]] = made.atom_pos[sulfur[0]] + _DISULFIDE * way / np.linalg.norm(way)
    return made


def _with_sidechain(name: str, backbone: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Heavy atoms of an amino acid, its ideal side chain put on N, CA and C ``(4, 3)``."""
    from biotite.structure import info

    ideal = info.residue(name)
    ideal = ideal[(ideal.element != "H") & ~np.isin(ideal.atom_name, ("O", "OXT"))]
    three = np.stack([ideal.coord[ideal.atom_name == a][0] for a in _BACKBONE[:3]]).astype(np.float64)
    center, there = three.mean(0), backbone[:3].mean(0)
    u, _, vt = np.linalg.svd((three - center).T @ (backbone[:3] - there))  # Kabsch
    u[:, 2] *= np.linalg.det(u @ vt)
    side = ~np.isin(ideal.atom_name, _BACKBONE)
    placed = (ideal.coord[side] - center) @ (u @ vt) + there
    return [*_BACKBONE, *ideal.atom_name[side].tolist()], np.concatenate([backbone, placed])
