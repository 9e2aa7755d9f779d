"""Search of the k nearest residues of every residue of a protein, on the CPU."""

from __future__ import annotations

import numpy as np

from benchmarks.synthetic_inputs import DENSITY, cloud
from benchmarks.timing import Measurement, interleave
from protgraph.structure.neighbors.search import knn

__all__ = ["measure"]

SIZES, NEIGHBORS = (150, 400, 1500), 30


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure k = 30 for random points at the density of CA atoms, with 150, 400 and 1500 residues.

    The error is the fraction of edges that differ.
    """
    return [_measure(n, seconds / len(SIZES)) for n in SIZES]


def _measure(n: int, seconds: float) -> Measurement:
    from scipy.spatial import cKDTree

    pos, k = cloud(n), NEIGHBORS
    ways = {
        "knn (exact, deterministic ties)": lambda: knn(pos, k)[0],
        "brute force: all distances, argpartition": lambda: _brute_force(pos, k),
        "scipy cKDTree": lambda: cKDTree(pos).query(pos, k + 1)[1][:, 1:].ravel(),
        "biotite CellList, growing radius": lambda: _cell_list(pos, k),
        "torch.cdist + topk": lambda: _cdist(pos, k),
    }
    first = next(iter(ways))
    mine = ways[first]().reshape(n, k)
    return Measurement(
        title=f"{k} nearest of {n} residues",
        reference=first,
        rows=interleave(ways, reference=first, seconds=seconds),
        lower_bound=f"{n * k:,} edges to write; all pairs are {n * n:,} distances, a tree needs about N·(log N + k)",
        error=max(_disagreement(mine, way().reshape(n, k)) for way in ways.values()),
    )


def _brute_force(pos: np.ndarray, k: int) -> np.ndarray:
    """Search with all differences."""
    d2 = ((pos[:, None] - pos[None]) ** 2).sum(-1)  # (N, N)
    np.fill_diagonal(d2, np.inf)
    near = np.argpartition(d2, k, axis=1)[:, :k]
    return np.take_along_axis(near, np.take_along_axis(d2, near, 1).argsort(1), 1)


def _cdist(pos: np.ndarray, k: int) -> np.ndarray:
    """Search as model code usually does."""
    import torch

    x = torch.from_numpy(pos)
    return torch.cdist(x, x).fill_diagonal_(torch.inf).topk(k, largest=False)[1].numpy()


def _cell_list(pos: np.ndarray, k: int) -> np.ndarray:
    """Search with cells of the radius of k neighbors on average, enlarged until every residue has k."""
    from biotite.structure import CellList

    radius = 1.3 * (3 * (k + 1) / (4 * np.pi * DENSITY)) ** (1 / 3)
    while True:
        near = CellList(pos, radius).get_atoms(pos, radius)  # (N, M), padded with −1
        if ((near >= 0).sum(1) > k).all():
            break
        radius *= 1.5
    d2 = ((pos[near] - pos[:, None]) ** 2).sum(-1)
    d2[(near < 0) | (near == np.arange(len(pos))[:, None])] = np.inf
    order = np.argpartition(d2, k - 1, axis=1)[:, :k]
    order = np.take_along_axis(order, np.take_along_axis(d2, order, 1).argsort(1), 1)
    return np.take_along_axis(near, order, 1)


def _disagreement(a: np.ndarray, b: np.ndarray) -> float:
    """Compute the fraction of edges ``(N, K)`` that only one of two searches has."""
    return float(np.mean([len(np.setdiff1d(x, y)) for x, y in zip(a, b, strict=True)])) / a.shape[1]
