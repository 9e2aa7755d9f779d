"""Backbone hydrogen bonds by the electrostatic energy of DSSP (Kabsch & Sander 1983), with inferred amide hydrogens."""

# Not pydssp: other hydrogens (on the bisector), ignores chain breaks (0.9.1, 2026-11-22). Not mkdssp: reads files.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["HBOND_ENERGY", "BackboneHBonds", "amide_hydrogen", "backbone_hbonds"]

HBOND_ENERGY = -0.5
"""An energy below this, in kcal/mol, is a hydrogen bond (Kabsch & Sander 1983, doi:10.1002/bip.360221211)."""

# Partial charges 0.42 e on C and O, 0.20 e on N and H; f = 332 Å kcal/(mol e²) (Kabsch & Sander 1983).
_COUPLING = 332.0 * 0.42 * 0.20
_REACH = 9.0  # Å between CA atoms, limit of the DSSP program; beyond it energies are far above −0.5 kcal/mol
_CLASH = 0.5  # Å; atoms closer than this have the lowest energy, −9.9 kcal/mol (DSSP program)
_LEAST = -9.9
_BEST = 2  # bonds kept per donor (DSSP program)
_DECIMALS = 3  # of energies (DSSP program)
_PROLINE = ALPHABET.index("P")
_N, _C, _O = 0, 2, 3  # columns of Residues.backbone


def amide_hydrogen(residues: Residues) -> np.ndarray:
    """Return the hydrogen on each backbone N: ``H_i = N_i + (C_{i-1} − O_{i-1}) / |C_{i-1} − O_{i-1}|``.

    Returns ``(N, 3)`` float64, Å, 1 Å from N, antiparallel to the previous C=O. NaN for proline, at the start of a
    chain, after a gap, and if an atom is missing.

    Prolines are identified by ``aatype``; if a task hides it, they have a hydrogen like all others.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211, section "Definition of the hydrogen bond".
    """
    backbone = residues.backbone.astype(np.float64)
    n = backbone[1:, _N]
    away = backbone[:-1, _C] - backbone[:-1, _O]  # from O to C of the residue before
    has_direction = np.linalg.norm(away, axis=1) > 0
    is_placed = linked_to_next(residues)[:-1] & has_direction
    rows = np.flatnonzero(is_placed)
    hydrogen = np.full((len(residues), 3), np.nan)
    hydrogen[rows + 1] = n[rows] + unit(away[rows])
    hydrogen[residues.aatype == _PROLINE] = np.nan
    return hydrogen


@dataclass(frozen=True, eq=False)
class BackboneHBonds:
    """N–H…O=C hydrogen bonds of the backbone, sorted by donor, then by energy.

    ``donor``, ``acceptor``: ``(P,)`` int64, residues of the N–H and of the C=O. ``energy``: ``(P,)`` float64, kcal/mol,
    below :data:`HBOND_ENERGY`.
    """

    donor: np.ndarray
    acceptor: np.ndarray
    energy: np.ndarray

    def select(self, rows: np.ndarray) -> BackboneHBonds:
        """Return some of the bonds, by a mask ``(P,)`` or by numbers in the new order."""
        return BackboneHBonds(self.donor[rows], self.acceptor[rows], self.energy[rows])


def backbone_hbonds(residues: Residues, *, best: int | None = _BEST) -> BackboneHBonds:
    """Return backbone hydrogen bonds: ``E = q₁q₂f (1/r_ON + 1/r_CH − 1/r_OH − 1/r_CN) < −0.5 kcal/mol``.

    ``q₁ = 0.42 e``, ``q₂ = 0.20 e``, ``f = 332 Å kcal/(mol e²)``.

    ``best``: number of strongest bonds kept per donor; None: all. The published definition has no limit, the program
    keeps two.

    As in the program: CA atoms are less than 9 Å apart; no bond to the C=O of the peptide bond of the same N; energies
    are rounded to 0.001 kcal/mol, and are −9.9 kcal/mol if any of the four distances is below 0.5 Å. A missing atom has
    no bonds.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211, section "Definition of the hydrogen bond".
    """
    donor, acceptor = _near_pairs(residues)
    backbone = residues.backbone.astype(np.float64)
    n = backbone[donor, _N]
    h = amide_hydrogen(residues)[donor]
    c = backbone[acceptor, _C]
    o = backbone[acceptor, _O]
    energy = _energy(n, h, c, o)
    is_bond = energy < HBOND_ENERGY  # False for NaN
    bonds = BackboneHBonds(donor, acceptor, energy).select(is_bond)

    bonds = bonds.select(np.lexsort((bonds.acceptor, bonds.energy, bonds.donor)))
    if best is None:
        return bonds
    first_of_donor = np.searchsorted(bonds.donor, bonds.donor)
    rank = np.arange(len(bonds.donor)) - first_of_donor
    return bonds.select(rank < best)


def _near_pairs(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Return donors and acceptors ``(P,)`` whose CA are near, without the two ends of a peptide bond."""
    ca = residues.pos.astype(np.float64)
    i, j = cKDTree(ca).query_pairs(_REACH, output_type="ndarray").T
    is_near = np.linalg.norm(ca[i] - ca[j], axis=1) < _REACH
    i = i[is_near]
    j = j[is_near]
    donor = np.concatenate([i, j])
    acceptor = np.concatenate([j, i])
    is_peptide = linked_to_next(residues)[acceptor] & (donor == acceptor + 1)
    return donor[~is_peptide], acceptor[~is_peptide]


def _energy(n: np.ndarray, h: np.ndarray, c: np.ndarray, o: np.ndarray) -> np.ndarray:
    """Return the energies ``(P,)``, kcal/mol, of N–H and O=C at ``(P, 3)`` each; NaN if an atom is missing."""
    ends = ((o, n), (c, h), (o, h), (c, n))
    r = np.stack([np.linalg.norm(a - b, axis=1) for a, b in ends])  # (4, P)
    attraction_on, attraction_ch, repulsion_oh, repulsion_cn = 1 / np.maximum(r, _CLASH)
    energy = _COUPLING * (attraction_on + attraction_ch - repulsion_oh - repulsion_cn)
    energy = np.maximum(np.round(energy, _DECIMALS), _LEAST)
    is_clash = (r < _CLASH).any(0)
    is_complete = ~np.isnan(r).any(0)
    return np.where(is_clash & is_complete, _LEAST, energy)
