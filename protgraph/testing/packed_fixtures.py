"""Small proteins with whole side chains, packed so that residues interact in every way; made without a file.

Ideal coordinates of amino acids are in ``ideal_residues.csv``, from the Chemical Component Dictionary of the wwPDB
(CC0). Not ``biotite.structure.info.residue``: it loads the whole dictionary, 736 MB and 20 s (biotite 1.6, 2026-11-22).
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from importlib import resources

import numpy as np

from protgraph.structure import Residues
from protgraph.structure.residues.alphabet import THREE_LETTER
from protgraph.testing.protein_fixtures import make_protein

__all__ = ["packed_proteins"]

_BACKBONE = ("N", "CA", "C", "O")
_DISULFIDE = 2.04  # Å, SG–SG


@cache
def packed_proteins() -> tuple[Residues, ...]:
    """Return a protein of two chains (26 and 20 residues) and one of a single chain (14), always the same.

    With these seeds, every kind of interaction occurs. One disulfide bond is made by moving a sulfur.
    """
    return _packed((26, 20), seed=156), _packed((14,), seed=8)


def _packed(lengths: tuple[int, ...], *, seed: int) -> Residues:
    protein = make_protein(lengths, seed=seed)
    rng = np.random.default_rng(seed)
    aatype = np.resize(rng.permutation(20), len(protein))  # every type, in chains long enough
    names = [THREE_LETTER[t] for t in aatype]
    parts = [_with_sidechain(name, backbone) for name, backbone in zip(names, protein.backbone, strict=True)]
    protein = replace(
        protein,
        aatype=aatype,
        res_name=np.array(names),
        atom_name=np.concatenate([name for name, _ in parts]),
        atom_pos=np.concatenate([pos for _, pos in parts]),
        atom_element=np.concatenate([[n[0] for n in name] for name, _ in parts]),
        atom_residue=np.repeat(np.arange(len(protein)), [len(name) for name, _ in parts]),
    )
    sulfur = np.flatnonzero((protein.atom_name == "SG") & (protein.res_name[protein.atom_residue] == "CYS"))
    if len(sulfur) > 1:
        vector = protein.atom_pos[sulfur[1]] - protein.atom_pos[sulfur[0]]
        protein.atom_pos[sulfur[1]] = protein.atom_pos[sulfur[0]] + _DISULFIDE * vector / np.linalg.norm(vector)
    return protein


@cache
def _ideal_residues() -> dict[str, dict[str, np.ndarray]]:
    """Read ``(3,)`` float32 coordinates (Å) of N, CA, C and side chains, by residue and atom name."""
    text = resources.files(__package__).joinpath("ideal_residues.csv").read_text(encoding="utf-8")
    atoms: dict[str, dict[str, np.ndarray]] = {}
    for row in csv.DictReader(text.splitlines()):
        atoms.setdefault(row["res_name"], {})[row["atom_name"]] = np.array([row[x] for x in "xyz"], np.float32)
    return atoms


def _with_sidechain(name: str, backbone: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the heavy atoms of an amino acid, its ideal side chain superimposed on N, CA and C of ``(4, 3)``."""
    ideal = _ideal_residues()[name]
    three = np.stack([ideal[atom] for atom in _BACKBONE[:3]]).astype(np.float64)
    center, target = three.mean(0), backbone[:3].mean(0)
    u, _, vt = np.linalg.svd((three - center).T @ (backbone[:3] - target))  # Kabsch
    u[:, 2] *= np.linalg.det(u @ vt)
    side = [atom for atom in ideal if atom not in _BACKBONE]
    coord = np.array([ideal[atom] for atom in side], np.float32).reshape(-1, 3)
    placed = (coord - center) @ (u @ vt) + target
    return [*_BACKBONE, *side], np.concatenate([backbone, placed])
