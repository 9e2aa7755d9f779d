"""Pairs of point clouds that are different but look alike: to distances, to angles, to few layers, to low degrees.

All are made by rule; edges join what a network may compare in one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from protgraph.structure import LossReport, Residues
from protgraph.symmetry import random_rotations

__all__ = ["PointCloud", "fold", "k_chain", "mirror_images", "star", "three_body", "two_body"]


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points of one kind, some of them joined.

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
        """The points as CA atoms of alanines, each a chain of its own, with nothing else known of them.

        ``framed`` gives each an N and a C, in the same direction from all points: their frames are the axes of space.
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
    """A point at the origin joined to points around it, ``(P, 3)``, which are not joined to each other."""
    rays = np.arange(1, len(around) + 1)
    return PointCloud(np.concatenate([np.zeros((1, 3)), around]), np.stack([np.zeros_like(rays), rays], 1))


def k_chain(k: int) -> tuple[PointCloud, PointCloud]:
    """k points in a line and one more at each end, which turn to one side, or to two: only both ends together tell.

    Neighbors are 5 Å apart. What a point can know grows by one step a layer, and the one in the middle is
    ``⌊k/2⌋ + 1`` steps from the farther end: fewer layers cannot tell the two apart. Layers that pass on distances
    alone never can.

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
    """A star of ``order`` rays in a plane, and the same turned by half the angle between two of them.

    Sums over the rays of spherical harmonics of degree ``1 ≤ l < order`` are the same for both: a network needs degree
    ``order`` to see how the star is turned.

    References
    ----------
    Joshi et al. 2023, arXiv:2301.09308, sec. 5.2 (rotational symmetry).
    """
    frame = random_rotations(1, seed=order)[0].numpy()  # no axis of the star is one of space

    def ring(turned: float) -> PointCloud:
        angles = 2 * math.pi * (np.arange(order) + turned) / order
        return star(5.0 * np.stack([np.cos(angles), np.sin(angles), np.zeros(order)], 1) @ frame.T)

    return ring(0.0), ring(0.5)


def two_body() -> tuple[PointCloud, PointCloud]:
    """Two rays of one length at 60° and at 90°: the same distances from the center."""
    return _ring([0, 60]), _ring([0, 90])


def three_body() -> tuple[PointCloud, PointCloud]:
    """Four rays of one length in a plane, two stars with the same distances and the same six angles.

    Rays point to 0, 1, 3, 4 and to 0, 1, 2, 5 of the eight corners of an octagon: homometric sets, whose differences
    are the same. No sum over pairs of neighbors tells them apart; sums over triples do.

    References
    ----------
    Pozdnyakov et al. 2020, Phys. Rev. Lett. 125, 166001 (degenerate environments); Patterson 1944, Phys. Rev. 65, 195
    (homometric sets).
    """
    return _ring([0, 45, 135, 180]), _ring([0, 45, 90, 225])


def mirror_images() -> tuple[PointCloud, PointCloud]:
    """A star of four rays of unlike lengths, not in a plane, and its mirror image."""
    around = np.array([[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 6.0], [-3.0, -3.0, -4.0]])
    return star(around), star(around * [1, 1, -1])


def _ring(degrees: list[int]) -> PointCloud:
    angles = np.radians(degrees)
    return star(5.0 * np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], 1))
