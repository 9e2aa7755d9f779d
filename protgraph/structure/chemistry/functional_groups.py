"""Functional groups of amino acids: which atoms are charged, aromatic, hydrophobic; by residue type and atom name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure.residues.alphabet import THREE_LETTER
from protgraph.structure.residues.residues import BACKBONE, Residues
from protgraph.structure.vectors import squared, unit

__all__ = [
    "ANIONS",
    "CATIONS",
    "HYDROPHOBIC",
    "AromaticRings",
    "close_atom_pairs",
    "atoms_by_name",
    "atom_mask",
    "close_point_pairs",
    "aromatic_rings",
    "sidechain_mask",
]

_MARGIN = 1e-9  # relative; far above the rounding of the tree's float64 distances, far below any real difference

ANIONS: Mapping[str, Collection[str]] = {"ASP": ("OD1", "OD2"), "GLU": ("OE1", "OE2")}
"""Side-chain oxygens that share a negative charge."""

CATIONS: Mapping[str, Collection[str]] = {
    "LYS": ("NZ",),
    "ARG": ("NE", "NH1", "NH2"),
    "HIS": ("ND1", "NE2"),
}
"""Side-chain nitrogens that share a positive charge; histidine's is partial, by its protonation."""

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
    """``(A,)`` bool, the atoms of these names in residues of these types; a modified residue counts as its parent."""
    known, code = np.unique(residues.atom_name, return_inverse=True)
    wanted = np.zeros((len(THREE_LETTER), len(known)), bool)
    for res_name, own in names.items():
        wanted[THREE_LETTER.index(res_name)] = np.isin(known, list(own))
    return wanted[residues.aatype[residues.atom_residue], code]


def sidechain_mask(residues: Residues, types: Collection[str]) -> np.ndarray:
    """``(A,)`` bool, all side-chain atoms of residues of these types."""
    own = np.isin(residues.aatype, [THREE_LETTER.index(name) for name in types])[residues.atom_residue]
    return own & ~np.isin(residues.atom_name, (*BACKBONE, "OXT"))


def close_atom_pairs(residues: Residues, some: np.ndarray, others: np.ndarray, cutoff: float) -> np.ndarray:
    """Atoms of two residues at most ``cutoff`` apart, the first of ``some``, the second of ``others``.

    Parameters
    ----------
    residues : Residues
    some, others : ndarray
        ``(A,)`` bool; where they overlap, a pair may come in both orders.
    cutoff : float
        Å, inclusive.

    Returns
    -------
    ndarray
        ``(2, P)`` int64.
    """
    a, b = np.flatnonzero(some), np.flatnonzero(others)
    i, j = close_point_pairs(residues.atom_pos[a], residues.atom_pos[b], cutoff)
    pairs = np.stack([a[i], b[j]])
    return pairs[:, residues.atom_residue[pairs[0]] != residues.atom_residue[pairs[1]]]


def close_point_pairs(some: np.ndarray, others: np.ndarray, cutoff: float) -> np.ndarray:
    """``(2, P)`` int64, which of ``some`` ``(M, 3)`` and of ``others`` ``(L, 3)`` are at most ``cutoff`` apart."""
    if len(some) == 0 or len(others) == 0:
        return np.zeros((2, 0), np.int64)
    some, others = some.astype(np.float64), others.astype(np.float64)
    near = cKDTree(some).sparse_distance_matrix(cKDTree(others), cutoff * (1 + _MARGIN), output_type="ndarray")
    pairs = np.stack([near["i"], near["j"]]).astype(np.int64)
    return pairs[:, squared(some[pairs[0]] - others[pairs[1]]) <= cutoff * cutoff]


@dataclass(frozen=True, eq=False)
class AromaticRings:
    """Aromatic rings that are complete; tryptophan has two.

    Parameters
    ----------
    residue : ndarray
        ``(R,)`` int64.
    center, normal : ndarray
        ``(R, 3)`` float64, Å: the mean of the ring's atoms; unit normal of their plane, of either sign.
    """

    residue: np.ndarray
    center: np.ndarray
    normal: np.ndarray


def aromatic_rings(residues: Residues, types: Collection[str] = tuple(_RINGS)) -> AromaticRings:
    """The aromatic rings of residues of these types: six atoms of PHE, TYR and TRP, five of TRP and HIS.

    Parameters
    ----------
    residues : Residues
    types : collection of str
        Of PHE, TYR, TRP, HIS.

    Returns
    -------
    AromaticRings
        By residue.
    """
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [_NO_RING]
    for res_name in types:
        rows = np.flatnonzero(residues.aatype == THREE_LETTER.index(res_name))
        for names in _RINGS[res_name]:
            atoms = atoms_by_name(residues, rows, names)  # (R, 5 or 6)
            whole = (atoms >= 0).all(1)
            pos = residues.atom_pos[atoms[whole]].astype(np.float64)  # (R, 5 or 6, 3)
            center = pos.mean(1)
            found.append((rows[whole], center, _normals(pos - center[:, None])))
    residue, center, normal = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(residue, kind="stable")
    return AromaticRings(residue[order], center[order], normal[order])


_NO_RING = (np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3)))


def _normals(pos: np.ndarray) -> np.ndarray:
    """Unit normals of rings ``(R, M, 3)`` about their centers: the mean of the cross products of neighbors."""
    return unit(np.cross(pos, np.roll(pos, -1, axis=1)).sum(1))


def atoms_by_name(residues: Residues, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
    """``(R, M)`` int64, the atoms of these names in the residues ``rows``; −1 where one is missing."""
    place = np.full(len(residues), -1)
    place[rows] = np.arange(len(rows))
    atoms = np.full((len(rows), len(names)), -1)
    for column, name in enumerate(names):
        own = np.flatnonzero(residues.atom_name == name)
        own = own[place[residues.atom_residue[own]] >= 0]
        atoms[place[residues.atom_residue[own]], column] = own
    return atoms
