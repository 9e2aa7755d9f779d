"""Electrostatic potential of the charged side chains: screened Coulomb sums at points around each residue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from protgraph.structure.descriptors.sidechain_points import sidechain_points
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.residues import Residues

__all__ = ["charge_sites", "charge_sums", "screened_potential"]

_CHARGED = {"K": (1.0, ("NZ",)), "R": (1.0, ("NH1", "NH2")), "H": (0.5, ("ND1", "NE2")), "D": (-1.0, ("OD1", "OD2"))}
_CHARGED |= {"E": (-1.0, ("OE1", "OE2"))}
_CLOSEST = 3.0  # Å, distances below count as this
_CHUNK = 2_000_000  # distances computed together


def charge_sites(residues: Residues) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, charges and residue indices of the charged groups at pH 7.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    tuple of ndarray
        ``(Q, 3)`` Å: the mean of the group's atoms (NZ of Lys; NH1, NH2 of Arg; ND1, NE2 of His; OD1, OD2 of Asp; OE1,
        OE2 of Glu), or the center of the side chain if all are missing. ``(Q,)`` elementary charges: Lys and Arg +1,
        His +0.5, Asp and Glu −1. ``(Q,)`` int64. The chain ends are not included.
    """
    center, n = sidechain_points(residues).center, len(residues)
    position, charge = center.copy(), np.zeros(n)
    for letter, (value, names) in _CHARGED.items():
        rows = residues.aatype == ALPHABET.index(letter)
        charge[rows] = value
        atoms = np.flatnonzero(np.isin(residues.atom_name, names) & rows[residues.atom_residue])
        owner = residues.atom_residue[atoms]
        count = np.bincount(owner, minlength=n)
        offset = residues.atom_pos[atoms].astype(np.float64) - center[owner]
        total = np.stack([np.bincount(owner, offset[:, axis], n) for axis in range(3)], 1)
        position += total / np.maximum(count, 1)[:, None]
    owner = np.flatnonzero(charge)
    return position[owner], charge[owner], owner


def screened_potential(residues: Residues, points: np.ndarray, *, lengths: Sequence[float]) -> np.ndarray:
    """Compute ``Σ q exp(-d / λ) / d`` over the charged groups of all other residues.

    Parameters
    ----------
    residues : Residues
    points : ndarray
        ``(N, P, 3)`` Å, points of each residue.
    lengths : sequence of float
        Screening lengths λ, Å.

    Returns
    -------
    ndarray
        ``(N, P, L)`` float64, elementary charges per nm. Distances d below 3 Å count as 3 Å.

    Notes
    -----
    The potential of Debye and Hückel in a homogeneous medium, without its constant factor; 10 Å is the Debye length of
    0.1 M salt. Not APBS: it solves the Poisson–Boltzmann equation, a separate program that takes minutes per protein.
    """
    out = np.zeros((*points.shape[:2], len(lengths)))
    for rows, distance, charge in _chunks(residues, points):
        d = np.maximum(distance, _CLOSEST)
        for k, length in enumerate(lengths):
            out[rows, :, k] = (10.0 * charge[:, None] * np.exp(-d / length) / d).sum(-1)
    return out


def charge_sums(residues: Residues, points: np.ndarray, *, radius: float = 10.0) -> np.ndarray:
    """Compute ``Σ |q| exp(-(d / radius)²)`` over the positive and over the negative groups of all other residues.

    Parameters
    ----------
    residues : Residues
    points : ndarray
        ``(N, P, 3)`` Å, points of each residue.
    radius : float
        Å.

    Returns
    -------
    ndarray
        ``(N, P, 2)`` float64, elementary charges.
    """
    out = np.zeros((*points.shape[:2], 2))
    for rows, distance, charge in _chunks(residues, points):
        weight = np.exp(-((distance / radius) ** 2))
        for k, sign in enumerate((1.0, -1.0)):
            out[rows, :, k] = (weight * np.maximum(sign * charge, 0.0)[:, None]).sum(-1)
    return out


def _chunks(residues: Residues, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield rows, their distances ``(n, P, Q)`` to all charges, and charges ``(n, Q)``, 0 for the residue's own."""
    position, charge, owner = charge_sites(residues)
    step = max(1, _CHUNK // max(1, points.shape[1] * len(charge)))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        part = points[rows]
        distance = np.linalg.norm(part[:, :, None] - position, axis=-1)
        own = np.arange(start, start + len(part))[:, None] == owner
        yield rows, distance, np.where(own, 0.0, charge)
