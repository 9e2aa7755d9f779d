"""Descriptors of binding sites: points of side chains, potential of charges, composition and shape of surroundings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure import unit
from protgraph.structure.descriptors import cb_or_ca
from protgraph.structure.neighbors import radius as radius_edges
from protgraph.structure.residues import ALPHABET, BACKBONE, Residues

__all__ = [
    "PROBES",
    "RESIDUE_CLASSES",
    "SHELLS",
    "SidechainPoints",
    "charge_sites",
    "charge_sums",
    "local_centers",
    "outward_direction",
    "probe_occupancy",
    "probe_points",
    "residue_classes",
    "screened_potential",
    "shell_composition",
    "sidechain_points",
]


_NOT_SIDECHAIN = (*BACKBONE, "OXT")
_NORMAL_RADIUS = 16.0  # Å

PROBES = ("center", "tip", "center + 4 Å", "center + 8 Å", "outward 8 Å", "outward 14 Å")
"""Points of :func:`probe_points`: of the side chain, along its direction, and along the outward direction."""


@dataclass(frozen=True)
class SidechainPoints:
    """Points of the side chain of each residue.

    Parameters
    ----------
    center : ndarray
        ``(N, 3)`` float64, Å, mean of its heavy atoms; without any, CB, else the virtual CB, else CA.
    tip : ndarray
        ``(N, 3)`` float64, Å, its heavy atom farthest from CA; without any, the center.
    direction : ndarray
        ``(N, 3)`` float64, unit vector from CA to the center; 0 if they coincide.
    """

    center: np.ndarray
    tip: np.ndarray
    direction: np.ndarray


def sidechain_points(residues: Residues) -> SidechainPoints:
    """Return center, tip and direction of the side chain of each residue.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    SidechainPoints
    """
    n = len(residues)
    ca = residues.pos.astype(np.float64)
    atoms = np.flatnonzero(~np.isin(residues.atom_name, _NOT_SIDECHAIN))
    residue = residues.atom_residue[atoms]
    offset = residues.atom_pos[atoms].astype(np.float64) - ca[residue]  # (A, 3) from CA: exact far from the origin

    # Mean of the atoms; without any, CB.
    count = np.bincount(residue, minlength=n)
    has_atoms = count > 0
    mean = _sums(residue, offset, n) / np.maximum(count, 1)[:, None]
    center = np.where(has_atoms[:, None], mean, cb_or_ca(residues) - ca)

    # The atom farthest from CA is the last one of each residue in this order.
    order = np.lexsort((np.linalg.norm(offset, axis=1), residue))
    last = np.cumsum(count)[has_atoms] - 1
    tip = center.copy()
    tip[has_atoms] = offset[order[last]]
    return SidechainPoints(ca + center, ca + tip, unit(center))


def _sums(index: np.ndarray, vectors: np.ndarray, size: int) -> np.ndarray:
    """Return the sum of the vectors ``(A, 3)`` of each index ``(A,)``, ``(size, 3)``."""
    return np.stack([np.bincount(index, vectors[:, axis], size) for axis in range(3)], 1)


def outward_direction(residues: Residues, *, radius: float = _NORMAL_RADIUS) -> np.ndarray:
    """Return the unit vector from the mean of the CA within ``radius`` to the CA of each residue.

    Parameters
    ----------
    residues : Residues
    radius : float
        Å, inclusive; the residue itself counts.

    Returns
    -------
    ndarray
        ``(N, 3)`` float64; 0 for a residue without neighbors. It approximates the normal of the molecular surface.
    """
    ca = residues.pos.astype(np.float64)
    j, i = radius_edges(ca, radius)
    count = np.bincount(i, minlength=len(ca)) + 1  # with the residue itself
    away = _sums(i, ca[i] - ca[j], len(ca)) / count[:, None]
    return unit(away)


def probe_points(residues: Residues) -> np.ndarray:
    """Return the points :data:`PROBES` of each residue, at which its surroundings are measured.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N, 6, 3)`` float64, Å.
    """
    side = sidechain_points(residues)
    outward = outward_direction(residues)
    points = [
        side.center,
        side.tip,
        side.center + 4.0 * side.direction,
        side.center + 8.0 * side.direction,
        side.center + 8.0 * outward,
        side.center + 14.0 * outward,
    ]
    return np.stack(points, 1)


#: Type → charge, and the atoms that have it.
_CHARGED = {
    "K": (1.0, ("NZ",)),
    "R": (1.0, ("NH1", "NH2")),
    "H": (0.5, ("ND1", "NE2")),
    "D": (-1.0, ("OD1", "OD2")),
    "E": (-1.0, ("OE1", "OE2")),
}
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
    n = len(residues)
    center = sidechain_points(residues).center
    position = center.copy()
    charge = np.zeros(n)
    for letter, (value, names) in _CHARGED.items():
        is_type = residues.aatype == ALPHABET.index(letter)
        charge[is_type] = value

        # The mean of the charged atoms, relative to the center of the side chain.
        atoms = np.flatnonzero(np.isin(residues.atom_name, names) & is_type[residues.atom_residue])
        residue = residues.atom_residue[atoms]
        offset = residues.atom_pos[atoms].astype(np.float64) - center[residue]
        count = np.bincount(residue, minlength=n)
        position += _sums(residue, offset, n) / np.maximum(count, 1)[:, None]
    charged = np.flatnonzero(charge)
    return position[charged], charge[charged], charged


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
            potential = 10.0 * charge[:, None] * np.exp(-d / length) / d
            out[rows, :, k] = potential.sum(-1)
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
        positive = np.maximum(charge, 0.0)[:, None]
        negative = np.maximum(-charge, 0.0)[:, None]
        out[rows, :, 0] = (weight * positive).sum(-1)
        out[rows, :, 1] = (weight * negative).sum(-1)
    return out


def _chunks(residues: Residues, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield rows, their distances ``(n, P, Q)`` to all charges, and charges ``(n, Q)``, 0 for the residue's own."""
    position, charge, charged = charge_sites(residues)
    step = max(1, _CHUNK // max(1, points.shape[1] * len(charge)))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        distance = np.linalg.norm(points[rows][:, :, None] - position, axis=-1)
        is_itself = np.arange(start, start + len(distance))[:, None] == charged
        yield rows, distance, np.where(is_itself, 0.0, charge)


RESIDUE_CLASSES = ("K", "R", "H", "D", "E", "NQ", "ST", "FWY", "AVILM", "C", "G", "P")
"""Classes of residue types by charge, polarity, aromaticity and backbone flexibility."""

SHELLS = ((0.0, 4.0), (6.0, 2.5), (10.0, 3.0), (15.0, 4.0))
"""Mean and width of the Gaussian distance shells of :func:`shell_composition`, Å."""

_FORWARD = 10.0  # Å, width of the Gaussian of the neighbors in the direction of the side chain
_CUTOFF = 27.0  # Å; the weights of all shells are below 2e-4 beyond


def residue_classes(aatype: np.ndarray) -> np.ndarray:
    """Return the one-hot class of each residue, ``(N, 12)`` float64; 0 for unknown types."""
    table = np.zeros((len(ALPHABET), len(RESIDUE_CLASSES)))
    for column, letters in enumerate(RESIDUE_CLASSES):
        for letter in letters:
            table[ALPHABET.index(letter), column] = 1.0
    return table[aatype]


def shell_composition(residues: Residues, exposure: np.ndarray) -> np.ndarray:
    """Count the residues of each class around a side chain, with Gaussian weights of the distance.

    Parameters
    ----------
    residues : Residues
    exposure : ndarray
        ``(N,)`` weight of each residue as a neighbor, e.g. its relative accessibility.

    Returns
    -------
    ndarray
        ``(N, 7, 12)`` float64: exposed residues in the four :data:`SHELLS`; all residues in the first two; exposed
        residues within 10 Å with weight cos θ, where θ < 90° is the angle from the direction of the side chain.
        Distances are between centers of side chains; the residue itself is not counted.
    """
    n = len(residues)
    side = sidechain_points(residues)
    j, i = radius_edges(side.center, _CUTOFF)
    vector = side.center[j] - side.center[i]
    distance = np.linalg.norm(vector, axis=1)

    # Weights of each neighbor: by distance, and by distance and direction.
    shells = [np.exp(-(((distance - mean) / width) ** 2)) for mean, width in SHELLS]
    cosine = (unit(vector) * side.direction[i]).sum(1).clip(0.0, 1.0)
    forward = np.exp(-((distance / _FORWARD) ** 2)) * cosine
    exposed = exposure[j]
    weights = [shell * exposed for shell in shells]
    weights += shells[:2]
    weights.append(forward * exposed)

    # Sums by residue and class of the neighbor.
    classes = residue_classes(residues.aatype)
    is_known = classes.any(1)[j]
    row = i * len(RESIDUE_CLASSES) + classes.argmax(1)[j]
    size = n * len(RESIDUE_CLASSES)
    sums = [np.bincount(row[is_known], weight[is_known], size).reshape(n, -1) for weight in weights]
    return np.stack(sums, 1)


def probe_occupancy(residues: Residues, points: np.ndarray, *, radii: Sequence[float]) -> np.ndarray:
    """Count the heavy atoms around points, divided by the square of the radius.

    Parameters
    ----------
    residues : Residues
    points : ndarray
        ``(N, P, 3)`` Å.
    radii : sequence of float
        Å, inclusive.

    Returns
    -------
    ndarray
        ``(N, P, R)`` float64, Å⁻². Large outside the surface in a cavity, small above a protruding part.
    """
    tree = cKDTree(residues.atom_pos.astype(np.float64))
    flat = points.reshape(-1, 3)
    counts = [tree.query_ball_point(flat, r, return_length=True) / r**2 for r in radii]
    return np.stack(counts, 1).reshape(*points.shape[:2], len(radii))


def local_centers(residues: Residues, *, radii: Sequence[float]) -> np.ndarray:
    """Compute the distance of each CA from the mean of the CA around it, and its angle to the side chain.

    Parameters
    ----------
    residues : Residues
    radii : sequence of float
        Å, inclusive; the residue itself counts.

    Returns
    -------
    ndarray
        ``(N, R, 2)`` float64: distance over radius, 0 inside and up to about 0.6 at a convex end; cosine between the
        direction of the side chain and the direction away from the mean.
    """
    ca = residues.pos.astype(np.float64)
    direction = sidechain_points(residues).direction
    j, i = radius_edges(ca, max(radii))
    vector = ca[i] - ca[j]
    distance = np.linalg.norm(vector, axis=1)
    out = np.zeros((len(ca), len(radii), 2))
    for k, radius in enumerate(radii):
        is_near = distance <= radius
        count = np.bincount(i[is_near], minlength=len(ca)) + 1
        away = _sums(i[is_near], vector[is_near], len(ca)) / count[:, None]
        out[:, k, 0] = np.linalg.norm(away, axis=1) / radius
        out[:, k, 1] = (unit(away) * direction).sum(1)
    return out
