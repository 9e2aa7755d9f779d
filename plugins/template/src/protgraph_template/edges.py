"""Edge featurizer: from a structure to edges j → i."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

import protgraph as pg
from protgraph.structure.neighbors import sort_edges

__all__ = ["TemplateLongRange"]


class TemplateLongRange(pg.EdgeFeaturizer):
    """Edges between residues within ``radius`` that are far apart in the sequence, or in different chains.

    Parameters
    ----------
    radius : float
        Maximum distance between CA atoms, Å.
    separation : int
        Least distance in positions along the same chain.

    Notes
    -----
    Symmetric. Ascending by target, then by distance, as for every edge featurizer.
    """

    def __init__(self, *, radius: float = 12.0, separation: int = 3) -> None:
        super().__init__()
        self.radius, self.separation = radius, separation

    def __call__(self, residues: pg.Residues) -> pg.EdgeList:
        pairs = KDTree(residues.pos).query_pairs(self.radius, output_type="ndarray").astype(np.int64)  # (P, 2)
        i, j = pairs.T
        same_chain = residues.chain[i] == residues.chain[j]
        far = ~same_chain | (np.abs(residues.seq_pos[i] - residues.seq_pos[j]) >= self.separation)
        i, j = i[far], j[far]
        edges = np.stack([np.concatenate([i, j]), np.concatenate([j, i])])  # (2, E) both directions
        source, target = sort_edges(residues.pos, edges)
        return pg.EdgeList(source, target)
