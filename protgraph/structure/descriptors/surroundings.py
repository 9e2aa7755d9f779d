"""Composition and shape of the surroundings of residues, at several distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure.descriptors.sidechain_points import sidechain_points
from protgraph.structure.neighbors.search import radius as radius_edges
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["RESIDUE_CLASSES", "SHELLS", "local_centers", "probe_occupancy", "residue_classes", "shell_composition"]

RESIDUE_CLASSES = ("K", "R", "H", "D", "E", "NQ", "ST", "FWY", "AVILM", "C", "G", "P")
"""Classes of residue types by charge, polarity, aromaticity and backbone flexibility."""

SHELLS = ((0.0, 4.0), (6.0, 2.5), (10.0, 3.0), (15.0, 4.0))
"""Mean and width of the Gaussian distance shells of :func:`shell_composition`, Å."""

_FORWARD = 10.0  # Å, width of the Gaussian of the neighbors in the direction of the side chain
_CUTOFF = 27.0  # Å; the weights of all shells are below 2e-4 beyond


def residue_classes(aatype: np.ndarray) -> np.ndarray:
    """Return the one-hot class of each residue, ``(N, 12)`` float64; 0 for unknown types."""
    table = np.array([[letter in group for group in RESIDUE_CLASSES] for letter in ALPHABET], np.float64)
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
    side, n = sidechain_points(residues), len(residues)
    j, i = radius_edges(side.center, _CUTOFF)
    vector = side.center[j] - side.center[i]
    distance = np.linalg.norm(vector, axis=1)
    shells = [np.exp(-(((distance - mean) / width) ** 2)) for mean, width in SHELLS]
    cosine = (unit(vector) * side.direction[i]).sum(1).clip(0.0, 1.0)
    forward = np.exp(-((distance / _FORWARD) ** 2)) * cosine
    exposed = exposure[j]
    weights = [*(w * exposed for w in shells), *shells[:2], forward * exposed]
    kind = residue_classes(residues.aatype)
    known = kind.any(1)[j]
    column = (i * len(RESIDUE_CLASSES) + kind.argmax(1)[j])[known]
    size = n * len(RESIDUE_CLASSES)
    return np.stack([np.bincount(column, w[known], size).reshape(n, -1) for w in weights], 1)


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
    tree, flat = cKDTree(residues.atom_pos.astype(np.float64)), points.reshape(-1, 3)
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
    ca, direction = residues.pos.astype(np.float64), sidechain_points(residues).direction
    j, i = radius_edges(ca, max(radii))
    vector = ca[i] - ca[j]
    distance = np.linalg.norm(vector, axis=1)
    out = np.zeros((len(ca), len(radii), 2))
    for k, radius in enumerate(radii):
        near = distance <= radius
        count = np.bincount(i[near], minlength=len(ca)) + 1
        total = np.stack([np.bincount(i[near], vector[near, axis], len(ca)) for axis in range(3)], 1)
        away = total / count[:, None]
        out[:, k] = np.stack([np.linalg.norm(away, axis=1) / radius, (unit(away) * direction).sum(1)], 1)
    return out
