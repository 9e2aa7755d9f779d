"""Metrics of ranked pockets against ligands: distances of centers, overlap of residues, recall of a ranking.

One site per ligand; pockets are in the order of their rank, the best first.

References
----------
Krivák & Hoksza 2018, Journal of Cheminformatics 10, 39 (top n, top n + 2); Utgés & Barton 2024, Journal of
Cheminformatics 16, 126 (overlap of residues, recall of a ranking); Kandel, Tayara & Chong 2021, Journal of
Cheminformatics 13, 65 (overlap of volumes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from protgraph.errors import OptionError

__all__ = [
    *("RankingRecall", "dca", "dcc", "dvo", "found_by_top_n", "jaccard", "recall_of_ranking", "relative_overlap"),
    *("voxels_of_points", "voxels_of_spheres"),
]

CUTOFF = 4.0
"""Å between the center of a pocket and a ligand that it finds."""

ATOM_RADIUS = 1.7
"""Å, of atoms of ligands and around cavities in volumes on a grid: that of carbon."""


class RankingRecall(NamedTuple):
    """Recall of the pockets of many proteins, ranked together by their scores.

    Parameters
    ----------
    recall : ndarray
        ``(K,)``, share of all ligands that the first 1, 2, … K pockets find.
    false_positives : ndarray
        ``(K,)`` int64, pockets among these that find no ligand.
    """

    recall: np.ndarray
    false_positives: np.ndarray


def dca(centers: np.ndarray, ligands: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distances of pocket centers to the nearest heavy atom of each ligand, DCA.

    Parameters
    ----------
    centers : ndarray
        ``(P, 3)``, Å.
    ligands : sequence of ndarray
        ``(M, 3)`` heavy atoms of each of the L ligands, Å.

    Returns
    -------
    ndarray
        ``(P, L)``, Å.
    """
    distances = np.zeros((len(centers), len(ligands)))
    if len(centers):
        for column, atoms in enumerate(ligands):
            distances[:, column], _ = cKDTree(atoms).query(centers)
    return distances


def dcc(centers: np.ndarray, ligands: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distances of pocket centers to the mean of the heavy atoms of each ligand, DCC; see :func:`dca`."""
    if not len(centers) or not ligands:
        return np.zeros((len(centers), len(ligands)))
    centroids = np.stack([atoms.mean(axis=0) for atoms in ligands])
    return cdist(centers, centroids)


def found_by_top_n(distances: np.ndarray, *, extra: int = 0, cutoff: float = CUTOFF) -> np.ndarray:
    """Return which ligands of a protein are found by its first n + ``extra`` pockets, n being the number of ligands.

    Parameters
    ----------
    distances : ndarray
        ``(P, L)`` of :func:`dca` or :func:`dcc`, pockets in the order of their rank.
    extra : int
        0 for "top n", 2 for "top (n + 2)".
    cutoff : float
        Largest distance, Å.

    Returns
    -------
    ndarray
        ``(L,)`` bool. One pocket may find several ligands.

    Examples
    --------
    >>> found_by_top_n(np.array([[9.0], [3.0]])).tolist(), found_by_top_n(np.array([[9.0], [3.0]]), extra=2).tolist()
    ([False], [True])
    """
    count = distances.shape[1] + extra
    return (distances[:count] <= cutoff).any(axis=0)


def jaccard(pockets: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Return the Jaccard index ``(P, L)`` of the residues of pockets and of sites; 0 if both are empty.

    Parameters
    ----------
    pockets, sites : ndarray
        ``(P, N)`` and ``(L, N)`` bool, residues of each pocket and of the site of each ligand.
    """
    both, size_of_pocket, size_of_site = _overlap(pockets, sites)
    either = size_of_pocket[:, None] + size_of_site - both
    return both / np.maximum(either, 1)


def relative_overlap(pockets: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Return the share ``(P, L)`` of the residues of each site that are in each pocket; see :func:`jaccard`."""
    both, _, size_of_site = _overlap(pockets, sites)
    return both / np.maximum(size_of_site, 1)


def dvo(pockets: Sequence[np.ndarray], ligands: Sequence[np.ndarray]) -> np.ndarray:
    """Return the discretized volume overlap ``(P, L)``: cells in common over cells of either; 0 if both are empty.

    Parameters
    ----------
    pockets, ligands : sequence of ndarray
        ``(V, 3)`` int64, different cells of 1 Å of each pocket and ligand, see :func:`voxels_of_spheres`.

    References
    ----------
    Kandel, Tayara & Chong 2021, doi:10.1186/s13321-021-00547-7.
    """
    overlap = np.zeros((len(pockets), len(ligands)))
    for row, pocket in enumerate(pockets):
        for column, ligand in enumerate(ligands):
            joined = np.concatenate([pocket, ligand])
            in_either = len(np.unique(joined, axis=0))
            if in_either:
                overlap[row, column] = (len(joined) - in_either) / in_either
    return overlap


def voxels_of_spheres(centers: np.ndarray, radii: np.ndarray, *, around: float = ATOM_RADIUS) -> np.ndarray:
    """Return the cells of 1 Å whose centers are in one of the spheres, each less the radius of the atoms around it.

    Parameters
    ----------
    centers, radii : ndarray
        ``(S, 3)`` and ``(S,)`` Å. Alpha spheres reach to the centers of atoms.
    around : float
        Å, subtracted from the radii; 0 for spheres that are atoms themselves.

    Returns
    -------
    ndarray
        ``(V, 3)`` int64, different cells; cell (i, j, k) has its center at i, j, k Å.
    """
    free_radii = np.maximum(radii - around, 0.0)
    farthest = int(np.ceil(free_radii.max(initial=0.0))) + 1
    side = 2 * farthest + 1
    offsets = np.indices((side, side, side)).reshape(3, -1).T - farthest  # cells of a cube around the origin
    cells = [np.zeros((0, 3), np.int64)]
    for center, radius in zip(centers, free_radii, strict=True):
        cell_of_center = np.rint(center).astype(np.int64)
        near = cell_of_center + offsets
        distance = np.linalg.norm(near - center, axis=1)
        cells.append(near[distance <= radius])
    return np.unique(np.concatenate(cells), axis=0)


def voxels_of_points(points: np.ndarray) -> np.ndarray:
    """Return the cells of 1 Å that contain one of the points of a grid, ``(M, 3)`` Å, as ``(V, 3)`` int64."""
    cells = np.rint(points).astype(np.int64)
    return np.unique(cells.reshape(-1, 3), axis=0)


def recall_of_ranking(
    scores: Sequence[np.ndarray], distances: Sequence[np.ndarray], *, cutoff: float = CUTOFF
) -> RankingRecall:
    """Return the recall at each number of predictions, of the pockets of all proteins in the order of their scores.

    Parameters
    ----------
    scores : sequence of ndarray
        ``(P,)``, scores of the pockets of each protein, comparable between proteins; equal ones stay in order.
    distances : sequence of ndarray
        ``(P, L)`` of :func:`dca` or :func:`dcc` of each protein; L may be 0.

    Raises
    ------
    OptionError
        A protein has other numbers of scores and of rows.
    """
    all_scores = np.concatenate([np.zeros(0), *scores])
    num_pockets = len(all_scores)
    order = np.argsort(-all_scores, kind="stable")
    rank = np.empty(num_pockets, dtype=np.int64)
    rank[order] = np.arange(num_pockets)

    # A ligand is found from the rank of the first pocket that hits it; `num_pockets` means by none.
    first_of_ligand = [np.zeros(0, np.int64)]
    is_false = np.zeros(num_pockets, dtype=bool)  # by rank
    begin = 0
    for number, (score, distance) in enumerate(zip(scores, distances, strict=True)):
        if len(score) != len(distance):
            raise OptionError(f"protein {number}: {len(score)} scores and distances of {len(distance)} pockets.")
        ranks = rank[begin : begin + len(score)]
        begin += len(score)
        is_hit = distance <= cutoff
        is_false[ranks] = ~is_hit.any(axis=1)
        rank_of_hit = np.where(is_hit, ranks[:, None], num_pockets)
        first_of_ligand.append(rank_of_hit.min(axis=0, initial=num_pockets))

    found_at = np.concatenate(first_of_ligand)
    found_by_rank = np.bincount(found_at, minlength=num_pockets + 1)[:num_pockets]
    recall = found_by_rank.cumsum() / max(len(found_at), 1)
    return RankingRecall(recall, is_false.cumsum())


def _overlap(pockets: np.ndarray, sites: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the common residues of P pockets and L sites ``(P, L)``, and the sizes of both."""
    if pockets.shape[1] != sites.shape[1]:
        raise OptionError(
            f"pockets of {pockets.shape[1]} residues and sites of {sites.shape[1]}. Use the same residues."
        )
    both = pockets.astype(np.int64) @ sites.astype(np.int64).T
    return both, pockets.sum(axis=1), sites.sum(axis=1)
