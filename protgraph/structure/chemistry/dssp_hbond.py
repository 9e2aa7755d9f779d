"""Backbone hydrogen bonds by the electrostatic energy of DSSP (Kabsch & Sander 1983), with inferred amide hydrogens.

Not pydssp: it places the hydrogen on the bisector of N–C and N–CA, not antiparallel to C=O, ignores chain breaks and
requires torch (pydssp 0.9.1, 2026-11-22). Not mkdssp: an external program that reads files.
"""

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


def amide_hydrogen(residues: Residues) -> np.ndarray:
    """Return the hydrogen on each backbone N: ``H_i = N_i + (C_{i-1} − O_{i-1}) / |C_{i-1} − O_{i-1}|``.

    Returns ``(N, 3)`` float64, Å, 1 Å from N, antiparallel to the previous C=O. NaN for proline, at the start of a
    chain, after a gap, and if an atom is missing.

    Notes
    -----
    Prolines are identified by ``aatype``; if a task hides it, they have a hydrogen like all others.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211, section "Definition of the hydrogen bond".
    """
    n, c, o = (residues.backbone[:, i].astype(np.float64) for i in (0, 2, 3))
    hydrogen = np.full((len(residues), 3), np.nan)
    away = c - o
    bonded = linked_to_next(residues)[:-1] & (np.linalg.norm(away[:-1], axis=1) > 0)
    hydrogen[1:][bonded] = (n[1:] + unit(away[:-1]))[bonded]
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


def backbone_hbonds(residues: Residues, *, best: int | None = _BEST) -> BackboneHBonds:
    """Return backbone hydrogen bonds: ``E = q₁q₂f (1/r_ON + 1/r_CH − 1/r_OH − 1/r_CN) < −0.5 kcal/mol``.

    ``q₁ = 0.42 e``, ``q₂ = 0.20 e``, ``f = 332 Å kcal/(mol e²)``.

    ``best``: number of strongest bonds kept per donor; None: all. The published definition has no limit, the program
    keeps two.

    Notes
    -----
    As in the program: CA atoms are less than 9 Å apart; no bond to the C=O of the peptide bond of the same N; energies
    are rounded to 0.001 kcal/mol, and are −9.9 kcal/mol if any of the four distances is below 0.5 Å. A missing atom has
    no bonds.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211, section "Definition of the hydrogen bond".
    """
    ca = residues.pos.astype(np.float64)
    i, j = cKDTree(ca).query_pairs(_REACH, output_type="ndarray").T
    near = np.linalg.norm(ca[i] - ca[j], axis=1) < _REACH
    donor, acceptor = np.concatenate([i[near], j[near]]), np.concatenate([j[near], i[near]])
    bound = linked_to_next(residues)[acceptor] & (donor == acceptor + 1)
    donor, acceptor = donor[~bound], acceptor[~bound]
    n, c, o = (residues.backbone[:, k].astype(np.float64) for k in (0, 2, 3))
    energy = _energy(n[donor], amide_hydrogen(residues)[donor], c[acceptor], o[acceptor])
    bond = energy < HBOND_ENERGY  # False for NaN
    donor, acceptor, energy = donor[bond], acceptor[bond], energy[bond]
    order = np.lexsort((acceptor, energy, donor))
    donor, acceptor, energy = donor[order], acceptor[order], energy[order]
    if best is not None:
        rank = np.arange(len(donor)) - np.searchsorted(donor, donor)
        strongest = rank < best
        donor, acceptor, energy = donor[strongest], acceptor[strongest], energy[strongest]
    return BackboneHBonds(donor, acceptor, energy)


def _energy(n: np.ndarray, h: np.ndarray, c: np.ndarray, o: np.ndarray) -> np.ndarray:
    """Return the energies ``(P,)``, kcal/mol, of N–H and O=C at ``(P, 3)`` each; NaN if an atom is missing."""
    ends = ((o, n), (c, h), (o, h), (c, n))
    r = np.stack([np.linalg.norm(a - b, axis=1) for a, b in ends])  # (4, P)
    inverse = 1 / np.maximum(r, _CLASH)
    energy = _COUPLING * (inverse[0] + inverse[1] - inverse[2] - inverse[3])
    energy = np.maximum(np.round(energy, _DECIMALS), _LEAST)
    return np.where((r < _CLASH).any(0) & ~np.isnan(r).any(0), _LEAST, energy)
