"""Pairs of different point clouds that share distances, angles, neighborhoods or low-degree moments.

Edges join the points that a network can compare in one layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from protgraph.structure import LossReport, Residues
from protgraph.testing.symmetry import random_rotations

__all__ = ["PointCloud", "fold", "k_chain", "mirror_images", "star", "three_body", "two_body"]


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points of one kind, some of them joined by edges.

    Parameters
    ----------
    pos : ndarray
        ``(N, 3)`` float64, Å.
    joined : ndarray
        ``(P, 2)`` int64, pairs of points; each is an edge in both directions.
    """

    pos: np.ndarray
    joined: np.ndarray

    @property
    def edge_index(self) -> np.ndarray:
        """``(2, 2P)`` int64, sorted by target."""
        both = np.concatenate([self.joined, self.joined[:, ::-1]])
        return both[np.lexsort(both.T)].T

    def residues(self, *, framed: bool = False) -> Residues:
        """Return the points as CA atoms of alanines, each in its own chain, without other atoms.

        ``framed`` adds an N and a C to each, in the same directions: all frames are the coordinate axes.
        """
        n = len(self.pos)
        backbone = np.full((n, 4, 3), np.nan)
        backbone[:, 1] = self.pos
        if framed:
            backbone[:, (0, 2)] = self.pos[:, None] + [[-0.5, 1.4, 0.0], [1.5, 0.0, 0.0]]
        return Residues(
            name="cloud",
            chain=np.arange(n).astype(str),
            res_id=np.zeros(n, np.int64),
            ins_code=np.full(n, ""),
            res_name=np.full(n, "ALA"),
            aatype=np.zeros(n, np.int64),
            pos=self.pos,
            backbone=backbone,
            b_factor=np.zeros(n),
            seq_pos=np.zeros(n, np.int64),
            atom_pos=self.pos,
            atom_name=np.full(n, "CA"),
            atom_element=np.full(n, "C"),
            atom_residue=np.arange(n),
            report=LossReport(),
        )


def star(around: np.ndarray) -> PointCloud:
    """Join a point at the origin to the points around it, ``(P, 3)``, which are not joined to each other."""
    rays = np.arange(1, len(around) + 1)
    return PointCloud(np.concatenate([np.zeros((1, 3)), around]), np.stack([np.zeros_like(rays), rays], 1))


def k_chain(k: int) -> tuple[PointCloud, PointCloud]:
    """Return two chains: k points in a line and one at each end, bent to the same side or to opposite sides.

    Neighbors are 5 Å apart. Only both ends together distinguish the chains. Information spreads by one step per layer,
    and the middle point is ``⌊k/2⌋ + 1`` steps from the farther end: fewer layers cannot distinguish the two. Layers
    that pass on distances alone never can.

    References
    ----------
    Joshi et al. 2023, arXiv:2301.09308, sec. 5.1 and fig. 4 (k-chains).
    """
    line = np.array([[0.0, 5.0 * i, 0.0] for i in range(k)])
    first, last = np.array([[-4.0, -3.0, 0.0]]), np.array([[4.0, 5.0 * (k - 1) + 3.0, 0.0]])
    joined = np.stack([np.arange(k + 1), np.arange(1, k + 2)], 1)
    opposite = np.concatenate([first, line, last])
    same = np.concatenate([first, line, last * [-1, 1, 1]])
    return PointCloud(opposite, joined), PointCloud(same, joined)


def fold(order: int) -> tuple[PointCloud, PointCloud]:
    """Return a planar star of ``order`` rays, and the same rotated by half the angle between two rays.

    Sums over the rays of spherical harmonics of degree ``1 ≤ l < order`` are equal for both: a network needs degree
    ``order`` to detect the rotation.

    References
    ----------
    Joshi et al. 2023, arXiv:2301.09308, sec. 5.2 (rotational symmetry).
    """
    frame = random_rotations(1, seed=order)[0].numpy()  # no ray lies on a coordinate axis

    def ring(shift: float) -> PointCloud:
        angles = 2 * math.pi * (np.arange(order) + shift) / order
        return star(5.0 * np.stack([np.cos(angles), np.sin(angles), np.zeros(order)], 1) @ frame.T)

    return ring(0.0), ring(0.5)


def two_body() -> tuple[PointCloud, PointCloud]:
    """Return stars of two rays of one length, at 60° and at 90°: equal distances from the center."""
    return _ring([0, 60]), _ring([0, 90])


def three_body() -> tuple[PointCloud, PointCloud]:
    """Return two planar stars of four rays of one length, with equal distances and the same six angles.

    Rays point to the corners 0, 1, 3, 4 and 0, 1, 2, 5 of an octagon: homometric sets, whose differences are equal. No
    sum over pairs of neighbors distinguishes them; sums over triples do.

    References
    ----------
    Pozdnyakov et al. 2020, Phys. Rev. Lett. 125, 166001 (degenerate environments); Patterson 1944, Phys. Rev. 65, 195
    (homometric sets).
    """
    return _ring([0, 45, 135, 180]), _ring([0, 45, 90, 225])


def mirror_images() -> tuple[PointCloud, PointCloud]:
    """Return a non-planar star of four rays of different lengths, and its mirror image."""
    around = np.array([[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 6.0], [-3.0, -3.0, -4.0]])
    return star(around), star(around * [1, 1, -1])


def _ring(degrees: list[int]) -> PointCloud:
    angles = np.radians(degrees)
    return star(5.0 * np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], 1))
