"""Alpha spheres: empty spheres through four atoms, which fill cavities as a probe would, without a grid.

A grid has an orientation, hence descriptors of a rotated protein differ; spheres through atoms turn with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay, QhullError, cKDTree

__all__ = ["AlphaSpheres", "alpha_spheres", "smooth_step"]

OPENING = (3.2, 4.0)
"""Å. Spheres up to the first radius are gaps between packed atoms (weight 0), from the second on cavity (weight 1)."""

CLOSING = (5.0, 6.0)
"""Å. Spheres from the second radius on are open space (weight 0), up to the first cavities (weight 1)."""

OUTSIDE = 9.0
"""Å. Spheres from this radius on, reached from open space through gaps of this radius, are outside of the protein."""

_ENCLOSURE = (6.0, 8.0)  # Å, atoms that enclose a sphere: weight 1 up to the first distance, 0 from the second on
_FLATTEST = 1e-6  # Å³, tetrahedra of a smaller volume have no reliable sphere
_SMALLEST = 1e-3  # Å³, spheres of a smaller volume are left out
_LARGEST = 100.0  # Å, larger spheres count as planes of the hull do: not at all, their neighbors suffice
_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])  # Qhull: face k is opposite to corner k


class AlphaSpheres(NamedTuple):
    """Empty spheres in the cavities of a protein, in no particular order.

    Attributes
    ----------
    center : ndarray
        ``(T, 3)`` float64, Å.
    radius : ndarray
        ``(T,)`` Å, distance from the center to the four nearest atoms (centers of atoms, not their surface).
    volume : ndarray
        ``(T,)`` Å³, volume of the tetrahedron of these atoms times the weight of the radius in a cavity. Spheres of a
        cavity tile it, so that volumes add up; where more than four atoms lie on one sphere, the sum does not depend
        on how it is cut into tetrahedra.
    depth : ndarray
        ``(T,)`` Å, distance from the center to the nearest sphere outside of the protein; 0 inside of one.
    enclosure : ndarray
        ``(T,)`` 0 to 1: 1 minus the length of the mean direction to the surrounding atoms. About 0.5 on a flat surface,
        1 where atoms surround the sphere evenly.
    """

    center: np.ndarray
    radius: np.ndarray
    volume: np.ndarray
    depth: np.ndarray
    enclosure: np.ndarray


class _Triangulation(NamedTuple):
    """Delaunay triangulation of atoms."""

    corners: np.ndarray  # (S, 4, 3)
    neighbors: np.ndarray  # (S, 4) tetrahedron behind each face, -1 beyond the hull
    center: np.ndarray  # (S, 3) of the circumscribed spheres
    radius: np.ndarray  # (S,) inf for flat tetrahedra
    volume: np.ndarray  # (S,)
    gap: np.ndarray  # (S, 4) radius of the circle through the three atoms of each face


def alpha_spheres(
    atom_pos: np.ndarray,
    *,
    opening: tuple[float, float] = OPENING,
    closing: tuple[float, float] = CLOSING,
    outside: float = OUTSIDE,
) -> AlphaSpheres:
    """Compute the spheres through four atoms that contain no other atom and have the radius of a cavity.

    Parameters
    ----------
    atom_pos : ndarray
        ``(A, 3)`` positions of the heavy atoms, Å; coincident ones count once.
    opening, closing : tuple of float
        Å, see :data:`OPENING` and :data:`CLOSING`: the weight of a radius rises and falls smoothly between the two.
    outside : float
        Å, see :data:`OUTSIDE`.

    Returns
    -------
    AlphaSpheres
        Empty for less than four atoms and for atoms in a plane.

    Notes
    -----
    The centers are vertices of the Voronoi diagram of the atoms, as in fpocket. Unlike there, spheres count by the
    volume of their tetrahedron: nearly flat tetrahedra, whose sphere depends on rounding, count nothing. Results turn
    with the protein and do not depend on the order of atoms.

    References
    ----------
    Le Guilloux, Schmidtke & Tuffery 2009, doi:10.1186/1471-2105-10-168; Liang, Edelsbrunner & Woodward 1998,
    doi:10.1002/pro.5560070905.
    """
    pos = np.unique(np.asarray(atom_pos, np.float64), axis=0)
    middle = pos.mean(0) if len(pos) else np.zeros(3)  # rounding far off the origin would move the spheres
    mesh = _triangulate(pos - middle)
    if mesh is None:
        none = np.zeros(0)
        return AlphaSpheres(np.zeros((0, 3)), none, none, none, none)
    is_outside = _reached_from_outside(mesh, outside)
    weight = smooth_step(mesh.radius, *opening) * (1 - smooth_step(mesh.radius, *closing))
    volume = np.where(is_outside, 0.0, mesh.volume * weight)
    chosen = np.flatnonzero(volume > _SMALLEST)
    center = mesh.center[chosen]
    return AlphaSpheres(
        center=center + middle,
        radius=mesh.radius[chosen],
        volume=volume[chosen],
        depth=_depth(mesh, is_outside, center),
        enclosure=_enclosure(center, pos - middle),
    )


def smooth_step(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return 0 up to ``low``, 1 from ``high`` on, and 3 t² − 2 t³ between."""
    t = ((x - low) / (high - low)).clip(0.0, 1.0)
    return t * t * (3 - 2 * t)


def _triangulate(pos: np.ndarray) -> _Triangulation | None:
    """Return the Delaunay triangulation; None if the positions span no volume."""
    if len(pos) < 4:
        return None
    try:
        mesh = Delaunay(pos)
    except QhullError:  # atoms in a plane
        return None
    corners = pos[mesh.simplices]  # (S, 4, 3)
    edges = corners[:, 1:] - corners[:, :1]  # (S, 3, 3)
    volume = np.abs(np.linalg.det(edges)) / 6
    solid = volume > _FLATTEST
    # the center c from the first corner has the same distance to all corners: e_k · c = |e_k|² / 2
    offset = np.full((len(edges), 3), np.inf)
    offset[solid] = np.linalg.solve(edges[solid], 0.5 * (edges[solid] ** 2).sum(2, keepdims=True))[..., 0]
    faces = corners[:, _FACES]  # (S, 4 faces, 3 corners, 3)
    a, b = faces[:, :, 1] - faces[:, :, 0], faces[:, :, 2] - faces[:, :, 0]
    sides = np.linalg.norm(a, axis=2) * np.linalg.norm(b, axis=2) * np.linalg.norm(a - b, axis=2)
    twice_area = np.linalg.norm(np.cross(a, b), axis=2)
    return _Triangulation(
        corners=corners,
        neighbors=mesh.neighbors,
        center=corners[:, 0] + offset,
        radius=np.linalg.norm(offset, axis=1),
        volume=volume,
        gap=sides / np.maximum(2 * twice_area, 1e-9),
    )


def _reached_from_outside(mesh: _Triangulation, radius: float) -> np.ndarray:
    """Return which spheres ``(S,)`` a probe of a radius reaches from outside, through gaps of this radius."""
    count = len(mesh.radius)
    infinity = count  # number of the space beyond the hull
    is_wide = np.append(mesh.radius >= radius, True)
    here, face = np.nonzero(mesh.gap >= radius)
    there = np.where(mesh.neighbors[here, face] < 0, infinity, mesh.neighbors[here, face])
    open_ = is_wide[here] & is_wide[there]
    links = coo_array((np.ones(open_.sum(), bool), (here[open_], there[open_])), shape=(count + 1, count + 1))
    part = connected_components(links, directed=False)[1]
    return part[:count] == part[infinity]


def _depth(mesh: _Triangulation, is_outside: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the distances ``(T,)`` of points to the space outside: its spheres, and the planes of the hull."""
    depth = np.full(len(points), np.inf)
    # spheres of the outer space that touch inner ones; those behind them are farther away
    behind = np.append(is_outside, True)[mesh.neighbors]  # (S, 4)
    rim = is_outside & ~behind.all(1) & (mesh.radius < _LARGEST)
    if rim.any():
        center, radius = mesh.center[rim], mesh.radius[rim]
        for rows in np.array_split(np.arange(len(points)), len(points) // 1000 + 1):
            squares = (points[rows] ** 2).sum(1)[:, None] + (center**2).sum(1) - 2 * points[rows] @ center.T
            depth[rows] = (np.sqrt(squares.clip(0)) - radius).min(1)
    # faces of the hull behind which inner spheres lie
    here, face = np.nonzero((mesh.neighbors < 0) & ~is_outside[:, None])
    if len(here):
        corners = mesh.corners[here[:, None], _FACES[face]]  # (F, 3, 3)
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normal, axis=1)
        normal, origin = normal[length > 1e-3] / length[length > 1e-3, None], corners[length > 1e-3, 0]
        inward = mesh.corners.mean((0, 1)) - origin  # the mean of all corners is inside the hull
        normal *= np.sign((normal * inward).sum(1))[:, None]
        above = points @ normal.T - (normal * origin).sum(1)  # (T, F)
        depth = np.minimum(depth, above.min(1, initial=np.inf))
    return depth.clip(0.0)


def _enclosure(center: np.ndarray, pos: np.ndarray) -> np.ndarray:
    """Return 1 minus the length of the weighted mean direction ``(T,)`` to the atoms around each center."""
    if len(center) == 0:
        return np.zeros(0)
    near = cKDTree(center).sparse_distance_matrix(cKDTree(pos), _ENCLOSURE[1], output_type="coo_matrix")
    weight = 1 - smooth_step(near.data, *_ENCLOSURE)
    direction = (pos[near.col] - center[near.row]) / near.data[:, None]  # (P, 3)
    count = len(center)
    total = [np.bincount(near.row, weight * direction[:, axis], count) for axis in range(3)]
    return 1 - np.linalg.norm(total, axis=0) / np.maximum(np.bincount(near.row, weight, count), 1e-9)
