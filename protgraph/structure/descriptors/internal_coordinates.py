"""Internal coordinates: bond lengths and angles of the backbone, dihedral angles of the side chain."""

# Not biotite's dihedral_side_chain: equal values in 3 times the time (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from protgraph.structure.descriptors.backbone_geometry import dihedral_angle
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import angle

__all__ = ["SYMMETRIC_CHI", "bond_angles", "bond_lengths", "sidechain_dihedrals"]

# Atoms that define χ1 … χ4, in order (IUPAC-IUB Commission 1970, doi:10.1021/bi00820a001, rule 4).
_CHAINS = {
    "C": "N CA CB SG",
    "D": "N CA CB CG OD1",
    "E": "N CA CB CG CD OE1",
    "F": "N CA CB CG CD1",
    "H": "N CA CB CG ND1",
    "I": "N CA CB CG1 CD1",
    "K": "N CA CB CG CD CE NZ",
    "L": "N CA CB CG CD1",
    "M": "N CA CB CG SD CE",
    "N": "N CA CB CG OD1",
    "P": "N CA CB CG CD",
    "Q": "N CA CB CG CD OE1",
    "R": "N CA CB CG CD NE CZ",
    "S": "N CA CB OG",
    "T": "N CA CB OG1",
    "V": "N CA CB CG1",
    "W": "N CA CB CG CD1",
    "Y": "N CA CB CG CD1",
}
_NAMES = tuple(sorted({name for chain in _CHAINS.values() for name in chain.split()}))
_LONGEST = max(len(chain.split()) for chain in _CHAINS.values())
_SELENIUM = "SE"  # in place of SD (MSE) or SG (SEC)

_ATOM_INDEX = np.full((len(ALPHABET), _LONGEST), -1)  # index in _NAMES of the atoms of each residue type
for _letter, _chain in _CHAINS.items():
    for _k, _name in enumerate(_chain.split()):
        _ATOM_INDEX[ALPHABET.index(_letter), _k] = _NAMES.index(_name)

SYMMETRIC_CHI = np.zeros((len(ALPHABET), 4), bool)
"""Angles for which χ and χ + π are the same side chain, because its last atoms are equivalent, ``(21, 4)`` bool."""
for _letter, _k in (("D", 1), ("F", 1), ("Y", 1), ("E", 2)):
    SYMMETRIC_CHI[ALPHABET.index(_letter), _k] = True


def sidechain_dihedrals(residues: Residues) -> np.ndarray:
    """Return χ1 to χ4 of each residue, the dihedral angles of N, CA, CB, … along the side chain.

    If the last atom is one of two equivalent ones (:data:`SYMMETRIC_CHI`), their names in the file are arbitrary: χ is
    defined up to π.

    Returns ``(N, 4)`` float64 in (−π, π], radians. NaN if the residue type has no such angle, an atom is missing, or
    three consecutive atoms are on a line. Modified residues have the angles of their parent for atoms of the same
    names.

    References
    ----------
    IUPAC-IUB Commission 1970, doi:10.1021/bi00820a001, rule 4.
    """
    named = np.full((len(residues), len(_NAMES) + 1, 3), np.nan)  # the last column is for missing atoms
    for column, name in enumerate(_NAMES):
        atoms = np.flatnonzero(residues.atom_name == name)
        if name in ("SD", "SG"):
            atoms = np.concatenate([np.flatnonzero(residues.atom_name == _SELENIUM), atoms])
        named[residues.atom_residue[atoms], column] = residues.atom_pos[atoms]
    chain = np.take_along_axis(named, _ATOM_INDEX[residues.aatype][..., None], 1)  # (N, 7, 3)
    return np.stack([dihedral_angle(*np.moveaxis(chain[:, k : k + 4], 1, 0)) for k in range(4)], 1)


def bond_lengths(residues: Residues) -> np.ndarray:
    """Return the bond lengths N–CA, CA–C, C–O and C–N of the next residue.

    Returns ``(N, 4)`` float64, Å; NaN if an atom is missing, the last also before a chain end or gap.
    """
    atoms = _peptide(residues)
    bonds = ((atoms.n, atoms.ca), (atoms.ca, atoms.c), (atoms.c, atoms.o), (atoms.c, atoms.next_n))
    return np.stack([np.linalg.norm(b - a, axis=1) for a, b in bonds], 1)


def bond_angles(residues: Residues) -> np.ndarray:
    """Return the bond angles N–CA–C, CA–C–O, CA–C–N′ and C–N′–CA′; primed atoms are of the next residue.

    Returns ``(N, 4)`` float64 in [0, π], radians; NaN if an atom is missing or two coincide, the last two also before a
    chain end or gap.
    """
    n, ca, c, o, next_n, next_ca = _peptide(residues)
    corners = ((n, ca, c), (ca, c, o), (ca, c, next_n), (c, next_n, next_ca))
    return np.stack([angle(first - at, last - at) for first, at, last in corners], 1)


class _Peptide(NamedTuple):
    """Atoms of each residue and of the next one, ``(N, 3)`` float64, NaN at chain ends."""

    n: np.ndarray
    ca: np.ndarray
    c: np.ndarray
    o: np.ndarray
    next_n: np.ndarray
    next_ca: np.ndarray


def _peptide(residues: Residues) -> _Peptide:
    n, ca, c, o = np.moveaxis(residues.backbone.astype(np.float64), 1, 0)
    is_linked = linked_to_next(residues)[:, None]
    next_n = np.where(is_linked, np.roll(n, -1, axis=0), np.nan)
    next_ca = np.where(is_linked, np.roll(ca, -1, axis=0), np.nan)
    return _Peptide(n, ca, c, o, next_n, next_ca)
