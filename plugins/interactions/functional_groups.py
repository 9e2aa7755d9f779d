"""Charged, aromatic and hydrophobic groups of amino acids, by residue type and atom name."""

# Not biotite's find_aromatic_rings: it requires bonds, which take 30 times as long to find (1.6.0, 2026-11-22).

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from protgraph.structure.descriptors import unit
from protgraph.structure.neighbors import close_pairs_between
from protgraph.structure.residues import BACKBONE, THREE_LETTER, Residues

__all__ = [
    "ANIONS",
    "CATIONS",
    "HYDROPHOBIC",
    "AromaticRings",
    "aromatic_rings",
    "atom_mask",
    "atoms_by_name",
    "close_atom_pairs",
    "sidechain_mask",
]

ANIONS: Mapping[str, Collection[str]] = {"ASP": ("OD1", "OD2"), "GLU": ("OE1", "OE2")}
"""Side-chain oxygens that share a negative charge."""

CATIONS: Mapping[str, Collection[str]] = {
    "LYS": ("NZ",),
    "ARG": ("NE", "NH1", "NH2"),
    "HIS": ("ND1", "NE2"),
}
"""Side-chain nitrogens that share a positive charge; histidine is charged only if protonated."""

HYDROPHOBIC = ("ALA", "VAL", "LEU", "ILE", "MET", "PHE", "TRP", "PRO", "TYR")
"""Residues with hydrophobic side chains (Tina et al. 2007, doi:10.1093/nar/gkm423)."""

_SIX = ("CG", "CD1", "CE1", "CZ", "CE2", "CD2")
_RINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "PHE": (_SIX,),
    "TYR": (_SIX,),
    "TRP": (("CD2", "CE2", "CZ2", "CH2", "CZ3", "CE3"), ("CG", "CD1", "NE1", "CE2", "CD2")),
    "HIS": (("CG", "ND1", "CE1", "NE2", "CD2"),),
}


def atom_mask(residues: Residues, names: Mapping[str, Collection[str]]) -> np.ndarray:
    """Return True for atoms of these names by residue type, ``(A,)`` bool; a modified residue counts as its parent."""
    present, code = np.unique(residues.atom_name, return_inverse=True)
    table = np.zeros((len(THREE_LETTER), len(present)), bool)
    for res_name, atom_names in names.items():
        table[THREE_LETTER.index(res_name)] = np.isin(present, list(atom_names))
    return table[residues.aatype[residues.atom_residue], code]


def sidechain_mask(residues: Residues, types: Collection[str]) -> np.ndarray:
    """Return True for side-chain atoms of residues of these types, ``(A,)`` bool."""
    has_type = np.isin(residues.aatype, [THREE_LETTER.index(name) for name in types])[residues.atom_residue]
    return has_type & ~np.isin(residues.atom_name, (*BACKBONE, "OXT"))


def close_atom_pairs(residues: Residues, is_first: np.ndarray, is_second: np.ndarray, cutoff: float) -> np.ndarray:
    """Return atom pairs of two residues at most ``cutoff`` apart, ``(2, P)`` int64.

    ``is_first``, ``is_second``: ``(A,)`` bool, the first and the second atoms of pairs; if they overlap, a pair may
    occur in both orders. ``cutoff``: Å, inclusive.
    """
    a, b = np.flatnonzero(is_first), np.flatnonzero(is_second)
    i, j = close_pairs_between(residues.atom_pos[a], residues.atom_pos[b], cutoff)
    pairs = np.stack([a[i], b[j]])
    return pairs[:, residues.atom_residue[pairs[0]] != residues.atom_residue[pairs[1]]]


@dataclass(frozen=True, eq=False)
class AromaticRings:
    """Complete aromatic rings; tryptophan has two.

    ``residue``: ``(R,)`` int64. ``center``, ``normal``: ``(R, 3)`` float64: mean of the ring atoms, Å; unit normal of
    the plane, of either sign.
    """

    residue: np.ndarray
    center: np.ndarray
    normal: np.ndarray


def aromatic_rings(residues: Residues, types: Collection[str] = tuple(_RINGS)) -> AromaticRings:
    """Return the aromatic rings of residues of these types: six-membered (PHE, TYR, TRP), five-membered (TRP, HIS)."""
    rings: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [_NO_RING]
    for res_name in types:
        rows = np.flatnonzero(residues.aatype == THREE_LETTER.index(res_name))
        for names in _RINGS[res_name]:
            atoms = atoms_by_name(residues, rows, names)  # (R, 5 or 6)
            is_complete = (atoms >= 0).all(1)
            pos = residues.atom_pos[atoms[is_complete]].astype(np.float64)  # (R, 5 or 6, 3)
            center = pos.mean(1)
            rings.append((rows[is_complete], center, _normals(pos - center[:, None])))
    residue, center, normal = (np.concatenate(part) for part in zip(*rings, strict=True))
    order = np.argsort(residue, kind="stable")
    return AromaticRings(residue[order], center[order], normal[order])


_NO_RING = (np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3)))


def _normals(pos: np.ndarray) -> np.ndarray:
    """Return unit normals of centered rings ``(R, M, 3)``, from the mean cross product of consecutive atoms."""
    return unit(np.cross(pos, np.roll(pos, -1, axis=1)).sum(1))


def atoms_by_name(residues: Residues, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
    """Return the atoms of these names in the residues ``rows (R,)``, ``(R, M)`` int64; −1 for missing atoms."""
    row = np.full(len(residues), -1)
    row[rows] = np.arange(len(rows))
    atoms = np.full((len(rows), len(names)), -1)
    for column, name in enumerate(names):
        named = np.flatnonzero(residues.atom_name == name)
        named = named[row[residues.atom_residue[named]] >= 0]
        atoms[row[residues.atom_residue[named]], column] = named
    return atoms
