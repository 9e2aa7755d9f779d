"""Featurizer of cavities: how much empty space a residue lines, how deep and how enclosed it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from protgraph_plugins.pockets.spheres import AlphaSpheres, alpha_spheres, smooth_step
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from protgraph.data.graph import Conformity, FieldSpec, register_field
from protgraph.featurize import StructureFeaturizer
from protgraph.structure.residues import Residues

__all__ = ["COLUMNS", "Cavity", "cavity_descriptors", "touched_volume", "volume_around"]
ENTRY_POINTS = {"protgraph.featurizers": {"cavity": "Cavity"}}

RANGES = (5.0, 8.0, 13.0)
"""Å, ranges of :func:`volume_around`."""

_BANDS = {"volume_to_4": (0.0, 4.0), "volume_4_5": (4.0, 5.0), "volume_from_5": (5.0, 9.0)}  # Å, radii
_TOUCHING = (0.3, 1.8)  # Å beyond the sphere; atoms up to the first touch it (weight 1), from the second on not
_FULL = 2.0  # Å³, spheres from this volume on count fully in a maximum

COLUMNS = (
    *_BANDS,
    "volume",
    *("around_5", "around_8", "around_13"),
    *("around_5_max", "around_8_max", "enclosed_8_max", "around_8_relative", "around_13_relative"),
    *("depth", "depth_max", "enclosure", "radius"),
)
"""Names of the columns of :func:`cavity_descriptors`."""

register_field(
    FieldSpec(
        "cavity", "node", f"{len(COLUMNS)}x0e", doc="empty space that the residue lines: volume, depth, enclosure"
    )
)


class Cavity(StructureFeaturizer):
    """Volume, depth and enclosure of the cavities that each residue lines, from alpha spheres.

    Writes
    ------
    cavity : (N, 16) float32, 16x0e
        The columns of :func:`cavity_descriptors`. All chains count; ligands, waters and nucleic acids are ignored. If
        side chains are hidden, they leave empty space.

    Notes
    -----
    Binding sites of small molecules are the largest cavities: without learning, ``around_8_relative`` alone has
    an AUPRC of .46 on 60 validation proteins of ``ligand_site`` (frequency .067), ``around_8`` .44, ``volume`` .31.

    References
    ----------
    See :func:`protgraph_plugins.pockets.spheres.alpha_spheres`.
    """

    writes: ClassVar[tuple[str, ...]] = ("cavity",)
    conformity = Conformity(tolerance=5e-3, proteins="packed")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        spheres = alpha_spheres(residues.atom_pos)
        return {"cavity": cavity_descriptors(residues, spheres).astype(np.float32)}


def cavity_descriptors(residues: Residues, spheres: AlphaSpheres) -> np.ndarray:
    """Compute descriptors of the alpha spheres that each residue touches.

    Parameters
    ----------
    residues : Residues
        The protein of which the spheres were computed.
    spheres : AlphaSpheres
        See :func:`protgraph_plugins.pockets.spheres.alpha_spheres`.

    Returns
    -------
    ndarray
        ``(N, 16)``, columns :data:`COLUMNS`; rows of 0 for residues that touch none. Volumes v are given as
        log(1 + v/Å³), lengths in Å.

        * ``volume_to_4``, ``volume_4_5``, ``volume_from_5``: of touched spheres of these radii; ``volume``: of all
        * ``around_5``, ``around_8``, ``around_13``: :func:`volume_around` touched spheres, mean
        * ``around_5_max``, ``around_8_max``: the largest; ``enclosed_8_max``: the largest product with the enclosure
        * ``around_8_relative``, ``around_13_relative``: the largest over the largest of the protein
        * ``depth``, ``enclosure``, ``radius``: means of touched spheres; ``depth_max``: the largest
    """
    if len(spheres.radius) == 0:
        return np.zeros((len(residues), len(COLUMNS)))
    touched = touched_volume(residues, spheres)  # (N, T)
    total = touched.sum(1)

    def mean(value: np.ndarray) -> np.ndarray:
        return (touched @ value) / (total + 1.0)

    # a sphere of little volume may appear and vanish with the rounding of coordinates: it counts little in a maximum
    share = touched.copy()
    share.data = (share.data / _FULL).clip(max=1.0)

    def largest(value: np.ndarray) -> np.ndarray:
        return share.multiply(value[None]).max(axis=1).toarray().ravel()

    bands = [touched @ _in_band(spheres.radius, *band) for band in _BANDS.values()]
    around = [np.log1p(volume) for volume in volume_around(spheres, RANGES)]
    near, middle, far = (largest(volume) for volume in around)
    columns = [
        *(np.log1p(band) for band in bands),
        np.log1p(total),
        *(mean(volume) for volume in around),
        near,
        middle,
        largest(around[1] * spheres.enclosure),
        middle / around[1].max(),
        far / around[2].max(),
        mean(spheres.depth),
        largest(spheres.depth),
        mean(spheres.enclosure),
        mean(spheres.radius),
    ]
    return np.stack(columns, axis=1)


def touched_volume(residues: Residues, spheres: AlphaSpheres) -> csr_array:
    """Compute the volume of each sphere that a residue touches with its nearest atom.

    Returns
    -------
    csr_array
        ``(N, T)`` float64, Å³: the volume of the sphere, falling to 0 where the atom is up to 1.8 Å away from it.
    """
    reach = spheres.radius.max() + _TOUCHING[1]
    atoms = cKDTree(residues.atom_pos.astype(np.float64))
    near = cKDTree(spheres.center).sparse_distance_matrix(atoms, reach, output_type="coo_matrix")
    gap = near.data - spheres.radius[near.row]
    close = gap < _TOUCHING[1]
    sphere, residue, gap = near.row[close], residues.atom_residue[near.col[close]], gap[close]
    # of the atoms of a residue only the nearest one
    order = np.lexsort((gap, sphere, residue))
    sphere, residue, gap = sphere[order], residue[order], gap[order]
    is_nearest = np.append(True, (np.diff(sphere) != 0) | (np.diff(residue) != 0))[: len(sphere)]
    sphere, residue, gap = sphere[is_nearest], residue[is_nearest], gap[is_nearest]
    volume = (1 - smooth_step(gap, *_TOUCHING)) * spheres.volume[sphere]
    return csr_array((volume, (residue, sphere)), shape=(len(residues), len(spheres.radius)))


def volume_around(spheres: AlphaSpheres, ranges: Sequence[float]) -> list[np.ndarray]:
    """Compute the volume of spheres around each sphere, with weights (1 − (d / range)²)³ of the distance of centers.

    Parameters
    ----------
    ranges : sequence of float
        Å, distances at which the weight reaches 0.

    Returns
    -------
    list of ndarray
        ``(T,)`` Å³ for each range. High inside of large cavities and at their mouth, low in channels and grooves.
    """
    tree = cKDTree(spheres.center)
    i, j = tree.query_pairs(max(ranges), output_type="ndarray").T  # each pair once
    squared = ((spheres.center[i] - spheres.center[j]) ** 2).sum(1)
    count = len(spheres.volume)
    volumes = []
    for reach in ranges:
        close = squared < reach**2
        a, b = i[close], j[close]
        weight = (1 - squared[close] / reach**2) ** 3
        neighbors = np.bincount(a, weight * spheres.volume[b], count) + np.bincount(
            b, weight * spheres.volume[a], count
        )
        volumes.append(spheres.volume + neighbors)
    return volumes


def _in_band(radius: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return weights ``(T,)`` of radii in a band, which fade over 0.2 Å on both sides of its ends."""
    return smooth_step(radius, low - 0.2, low + 0.2) * (1 - smooth_step(radius, high - 0.2, high + 0.2))
