"""Incomplete and missing residues as neighbors, as in the published program."""

from __future__ import annotations

import numpy as np
import torch
from protgraph_plugins.proteinmpnn.gaussian import SOFTEN
from torch import Tensor

from protgraph import Residues
from protgraph.ops import Proteins

__all__ = ["farthest_complete", "knn_with_unresolved"]


def knn_with_unresolved(residues: Residues, complete: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sources and targets ``(E,)`` of the edges to each complete residue from the k nearest residues.

    Incomplete residues are as far as the farthest complete one. The program takes them with ``torch.topk`` from
    residues sorted by chain name; this computes the same rows, so ties are broken in the same way.

    Parameters
    ----------
    residues : Residues
    complete : ndarray
        ``(N,)`` bool.
    k : int
    """
    order = np.argsort(residues.chain, kind="stable")
    there = torch.from_numpy(complete[order])
    pos = torch.from_numpy(np.where(complete[:, None], residues.pos, 0)[order])
    both = there[:, None] & there
    distance = both * (pos[:, None] - pos).square().sum(-1).add(SOFTEN).sqrt()  # (N, N)
    distance = distance + ~both * distance.amax(1, keepdim=True)
    nearest = distance.topk(min(k, len(order)), largest=False).indices  # (N, K)
    source = order[nearest.numpy()]
    rows = np.flatnonzero(complete)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return source[place[rows]].reshape(-1), np.repeat(rows, source.shape[1])


def farthest_complete(pos: Tensor, complete: Tensor, proteins: Proteins) -> Tensor:
    """Return the softened distance ``(N,)``, Å, from each residue to the farthest complete one of its protein.

    ``pos`` is ``(N, 3)``, Å, and ``complete`` ``(N,)`` bool.
    """
    largest = []
    for each, mask in zip(pos.split(proteins.sizes), complete.split(proteins.sizes), strict=True):
        distance = (each[:, None] - each).square().sum(-1).add(SOFTEN).sqrt()  # (N, N)
        largest.append((distance * mask).amax(1))
    return torch.cat(largest)
