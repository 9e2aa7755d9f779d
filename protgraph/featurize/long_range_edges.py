"""Edges beyond the nearest neighbors: distant in sequence, random long-range, Delaunay, and complete."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Lt

from protgraph.data.graph.conformity import Conformity
from protgraph.featurize.base import EdgeFeaturizer, EdgeList
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.neighbors.atom_distance import distant_knn
from protgraph.structure.neighbors.long_range import delaunay, random_neighbors
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import squared

__all__ = ["Complete", "Delaunay", "DistantKnn", "RandomLongRange"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "complete": "Complete",
        "delaunay": "Delaunay",
        "distant_knn": "DistantKnn",
        "random_long_range": "RandomLongRange",
    },
}


class Complete(EdgeFeaturizer):
    """Edges between all pairs of nodes; symmetric.

    Notes
    -----
    N² − N edges. The layer ``transformer`` attends to all nodes without storing edges.
    """

    needs_coordinates: ClassVar[bool] = False
    conformity = Conformity(expected_failures={"non_trivial": "all nodes are joined, independent of the structure"})

    def __call__(self, residues: Residues) -> EdgeList:
        return _complete(residues.pos)

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return all ordered pairs of nodes."""
        return _complete(nodes.pos)


class Delaunay(EdgeFeaturizer):
    """Edges of the Delaunay triangulation of the nodes; symmetric.

    Parameters
    ----------
    cutoff : float, optional
        Å, inclusive; longer edges, e.g. across the surface, are removed. None keeps all.

    References
    ----------
    Singh, Tropsha & Vaisman 1996, doi:10.1089/cmb.1996.3.213. See
    :func:`protgraph.structure.neighbors.long_range.delaunay` for degenerate point sets.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] | None = None) -> None:
        super().__init__()
        self.cutoff = cutoff

    def __call__(self, residues: Residues) -> EdgeList:
        return _triangulated(residues.pos, self.cutoff)

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the edges of the Delaunay triangulation of the nodes, in both directions."""
        return _triangulated(nodes.pos, self.cutoff)


class DistantKnn(EdgeFeaturizer):
    """Edges from the k nearest residues among those of other chains or at least ``separation`` positions away.

    Parameters
    ----------
    k : int
        Number of neighbors; all eligible residues if there are fewer.
    separation : int
        Minimum ``|seq_pos[i] - seq_pos[j]|`` within a chain.

    Notes
    -----
    Directed. Unlike ``knn`` with a separation, which removes some of the k neighbors, this finds k eligible ones.
    """

    def __init__(self, *, k: Annotated[int, Ge(1)] = 8, separation: Annotated[int, Ge(1)] = 6) -> None:
        super().__init__()
        self.k, self.separation = k, separation

    def __call__(self, residues: Residues) -> EdgeList:
        return EdgeList(*distant_knn(residues, self.k, self.separation))


class RandomLongRange(EdgeFeaturizer):
    """Edges from k residues drawn at random, with probabilities ∝ ``d^-exponent``.

    Parameters
    ----------
    k : int
        Number of draws per residue, without replacement.
    separation : int
        Minimum sequence separation within a chain.
    exponent : float
        Exponent of the CA–CA distance; 0 draws uniformly.
    seed : int
        Random seed.

    Notes
    -----
    Directed. For the sampling see :func:`protgraph.structure.neighbors.long_range.random_neighbors`.

    References
    ----------
    Ingraham et al. 2023, doi:10.1038/s41586-023-06728-8, supplement (random graph neural networks: inverse cubic
    distance).
    """

    conformity = Conformity(expected_failures={"numbering": "the random numbers of a residue come from its identity"})

    def __init__(
        self,
        *,
        k: Annotated[int, Ge(1)] = 8,
        separation: Annotated[int, Ge(1)] = 6,
        exponent: Annotated[float, Ge(0), Lt(100)] = 3.0,
        seed: Annotated[int, Ge(0), Lt(2**63)] = 0,
    ) -> None:
        super().__init__()
        self.k, self.separation = k, separation
        self.exponent, self.seed = float(exponent), seed

    def __call__(self, residues: Residues) -> EdgeList:
        edges = random_neighbors(residues, self.k, separation=self.separation, exponent=self.exponent, seed=self.seed)
        return EdgeList(*edges)


def _complete(pos: np.ndarray) -> EdgeList:
    n = len(pos)
    target, source = np.nonzero(~np.eye(n, dtype=bool))
    source, target = neighbors.sort_edges(pos, np.stack([source, target]))
    return EdgeList(source, target, degree=max(n - 1, 0))


def _triangulated(pos: np.ndarray, cutoff: float | None) -> EdgeList:
    source, target = neighbors.to_undirected(pos, delaunay(pos))
    if cutoff is None:
        return EdgeList(source, target)
    exact = np.asarray(pos, np.float64)
    near = squared(exact[source] - exact[target]) <= cutoff * cutoff
    return EdgeList(source[near], target[near])
