"""Pockets of PocketNet: clusters of the surface points with the highest probabilities."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.pocketnet.weights import find_pocketnet
from scipy.cluster.hierarchy import fcluster, linkage

from protgraph.model import pretrained
from protgraph.structure import Residues

__all__ = ["PocketNet", "PointPocket", "cluster_points"]

_SHARE, _MOST, _LEAST = 0.03, 300, 3  # of the points are clustered; at most and at least this many
_LINK = 6.5  # Å, mean distance of two clusters that are joined
_TOP = 24  # points of a pocket that give its score and center
_POCKETS = 10  # at most


class PointPocket(NamedTuple):
    """A cluster of surface points.

    Attributes
    ----------
    center : ndarray
        ``(3,)`` Å, mean of the 24 best points, weighted by their probabilities.
    score : float
        Sum of the probabilities of these points.
    points : ndarray
        Rows of all its points, the best first.
    """

    center: np.ndarray
    score: float
    points: np.ndarray


class PocketNet:
    """Find pockets with the published networks of PocketNet.

    Raises
    ------
    MissingExtraError
        The distribution ``pocketnet`` is not on this machine.

    Notes
    -----
    The model is ``pocketnet`` of the registry. Clusters and probabilities are those of the program with its defaults.
    """

    def __init__(self) -> None:
        self.model = pretrained("pocketnet")
        calibration = json.loads((find_pocketnet() / "calibration.json").read_text(encoding="utf-8"))
        self._score, self._chance = calibration["x"], calibration["y"]

    def __call__(self, residues: Residues) -> list[PointPocket]:
        """Return at most ten pockets of a protein, the one of the highest score first."""
        graph = self.model.plan.precompute(residues)
        with torch.no_grad():
            fields = self.model.embed(graph)
        probability = fields["pocketnet_points_probability"][:, 0].numpy()
        return cluster_points(graph["pocketnet_points_pos"].numpy(), probability)

    def probability(self, score: np.ndarray) -> np.ndarray:
        """Return the probability that a ligand binds in pockets of these scores, as calibrated by its authors."""
        return np.interp(score, self._score, self._chance)


def cluster_points(pos: np.ndarray, probability: np.ndarray) -> list[PointPocket]:
    """Cluster the best 3 % of the points by average linkage, up to 6.5 Å; clusters of fewer than 3 are left out.

    Parameters
    ----------
    pos, probability : ndarray
        ``(P, 3)`` Å and ``(P,)``.
    """
    number = min(max(round(len(pos) * _SHARE), _LEAST), _MOST)
    if len(pos) < number:
        return []
    best = np.argsort(-probability)[:number]
    cluster = fcluster(linkage(pos[best], "average"), _LINK, "distance")
    pockets = []
    for label in np.unique(cluster):
        points = best[cluster == label]
        if len(points) < _LEAST:
            continue
        top = points[:_TOP]
        weight = np.maximum(probability[top], 1e-6)
        center = (pos[top] * weight[:, None]).sum(0) / weight.sum()
        pockets.append(PointPocket(center, float(probability[top].sum()), points))
    pockets.sort(key=lambda pocket: -pocket.score)
    return pockets[:_POCKETS]
