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
    # In the order of the program: by chain name.
    order = np.argsort(residues.chain, kind="stable")
    is_complete = torch.from_numpy(complete[order])
    pos = torch.from_numpy(np.where(complete[:, None], residues.pos, 0)[order])
    both_complete = is_complete[:, None] & is_complete
    distance = both_complete * (pos[:, None] - pos).square().sum(-1).add(SOFTEN).sqrt()  # (N, N)
    farthest = distance.amax(1, keepdim=True)
    distance = distance + ~both_complete * farthest
    nearest = distance.topk(min(k, len(order)), largest=False).indices  # (N, K)

    # In the order of the residues.
    neighbors = np.empty_like(nearest.numpy())
    neighbors[order] = order[nearest.numpy()]
    target = np.flatnonzero(complete)
    return neighbors[target].reshape(-1), np.repeat(target, neighbors.shape[1])


def farthest_complete(pos: Tensor, complete: Tensor, proteins: Proteins) -> Tensor:
    """Return the softened distance ``(N,)``, Å, from each residue to the farthest complete one of its protein.

    ``pos`` is ``(N, 3)``, Å, and ``complete`` ``(N,)`` bool.
    """
    largest = []
    for x, is_complete in zip(pos.split(proteins.sizes), complete.split(proteins.sizes), strict=True):
        distance = (x[:, None] - x).square().sum(-1).add(SOFTEN).sqrt()  # (N, N)
        largest.append((distance * is_complete).amax(1))
    return torch.cat(largest)
