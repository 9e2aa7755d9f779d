"""Neighbor search on positions and residues; edges run from source (row 0) to target (row 1)."""

from protgraph.structure.neighbors.atom_distance import distant_knn, knn_by_atoms
from protgraph.structure.neighbors.long_range import delaunay, random_neighbors
from protgraph.structure.neighbors.search import (
    argsort_edges,
    close_pairs,
    close_pairs_between,
    compact_fragments,
    contact,
    knn,
    knn_between,
    radius,
    sequence,
    sort_edges,
    to_undirected,
)

__all__ = [
    "argsort_edges",
    "close_pairs",
    "close_pairs_between",
    "compact_fragments",
    "contact",
    "delaunay",
    "distant_knn",
    "knn",
    "knn_between",
    "knn_by_atoms",
    "radius",
    "random_neighbors",
    "sequence",
    "sort_edges",
    "to_undirected",
]
