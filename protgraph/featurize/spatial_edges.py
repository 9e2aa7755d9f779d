"""Edges between neighbors in space or sequence, computed once per protein (:mod:`protgraph.structure.neighbors`).

All featurizers write ``edge_index`` (2, E) int64, without self loops, ascending by target, within a target by CA–CA
distance, ties by source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from protgraph.errors import OptionError, WiringError
from protgraph.featurize.base import EdgeFeaturizer, EdgeList
from protgraph.structure.descriptors.backbone_geometry import cb_or_ca, sidechain_centroid
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.neighbors.atom_distance import knn_by_atoms
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = ["Contact", "Knn", "Radius", "Sequence", "SequenceOffset"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "contact": "Contact",
        "knn": "Knn",
        "radius": "Radius",
        "sequence": "Sequence",
        "sequence_offset": "SequenceOffset",
    },
}

Points = Literal["node", "cb", "centroid", "any_atom"]


class Knn(EdgeFeaturizer):
    """Edges from the k nearest residues to each residue.

    Parameters
    ----------
    k : int
        Number of neighbors; all other residues if the protein has fewer.
    of : {"node", "cb", "centroid", "any_atom"}
        Points between which distances are measured: node positions (CA); CB, or virtual CB where the file has none;
        side-chain centroids (CA for glycine); the two closest heavy atoms.
    separation : int
        Remove neighbors of the same chain with a smaller sequence separation from the k. ``distant_knn`` finds k
        others.

    Notes
    -----
    Directed: i may be among the nearest of j but not j among those of i. Without a separation, every residue has
    exactly min(k, N − 1) incoming edges, so that reductions are reshapes. Ties at the k-th distance are resolved by
    node index. Edges are sorted by the distance between node positions for every choice of ``of``.

    References
    ----------
    Virtual CB: see :func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`. Separation: Zhang et al. 2022,
    arXiv:2203.06125.
    """

    def __init__(
        self, *, k: Annotated[int, Ge(1)] = 16, of: Points = "node", separation: Annotated[int, Ge(0)] = 0
    ) -> None:
        super().__init__()
        self.k, self.of, self.separation = k, of, separation

    def __call__(self, residues: Residues) -> EdgeList:
        if self.of == "any_atom":
            edges = knn_by_atoms(residues.pos, residues.atom_pos, residues.atom_residue, self.k)
        else:
            edges = _edges_between(residues, self.of, partial(neighbors.knn, k=self.k))
        if self.separation > 1:
            return EdgeList(*_select_separated(residues, edges, self.separation))
        source, target = edges
        return EdgeList(source, target, degree=max(min(self.k, len(residues) - 1), 0))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the edges from the ``k`` nearest nodes of each node."""
        _require_point_nodes("knn", self.of, self.separation)
        source, target = neighbors.knn(nodes.pos, self.k)
        return EdgeList(source, target, degree=max(min(self.k, len(nodes) - 1), 0))

    def between(self, sources: np.ndarray, targets: np.ndarray | None = None) -> EdgeList:
        """Return the edges from the ``k`` nearest points to each point."""
        _require_point_nodes("knn", self.of, self.separation)
        edges = neighbors.knn(sources, self.k) if targets is None else neighbors.knn_between(sources, targets, self.k)
        return EdgeList(*edges)


class Radius(EdgeFeaturizer):
    """Edges between all residues at most ``radius`` apart; symmetric.

    Parameters
    ----------
    radius : float
        Å, inclusive.
    of : {"node", "cb", "centroid", "any_atom"}
        Points between which distances are measured, see :class:`Knn`. "any_atom" equals ``contact``.
    separation : int
        Minimum sequence separation within a chain.
    """

    def __init__(
        self, *, radius: Annotated[float, Gt(0)] = 10.0, of: Points = "node", separation: Annotated[int, Ge(0)] = 0
    ) -> None:
        super().__init__()
        self.radius, self.of, self.separation = radius, of, separation

    def __call__(self, residues: Residues) -> EdgeList:
        pos, atoms = residues.pos, residues.atom_pos
        if self.of == "any_atom":
            edges = neighbors.contact(pos, atoms, residues.atom_residue, self.radius)
        else:
            edges = _edges_between(residues, self.of, partial(neighbors.radius, cutoff=self.radius))
        return EdgeList(*_select_separated(residues, edges, self.separation))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the edges between nodes within the radius."""
        _require_point_nodes("radius", self.of, self.separation)
        return EdgeList(*neighbors.radius(nodes.pos, self.radius))

    def between(self, sources: np.ndarray, targets: np.ndarray | None = None) -> EdgeList:
        """Return the edges between points within the radius."""
        _require_point_nodes("radius", self.of, self.separation)
        if targets is None:
            return EdgeList(*neighbors.radius(sources, self.radius))
        pairs = neighbors.close_pairs_between(sources, targets, self.radius)
        return EdgeList(*neighbors.sort_edges(targets, pairs, sources))


class Contact(EdgeFeaturizer):
    """Edges between all residues with two heavy atoms at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    Notes
    -----
    Consecutive residues are in contact through their peptide bond. If a task hides side chains, only backbone atoms
    are used.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] = 4.5) -> None:
        super().__init__()
        self.cutoff = cutoff

    def __call__(self, residues: Residues) -> EdgeList:
        edges = neighbors.contact(residues.pos, residues.atom_pos, residues.atom_residue, self.cutoff)
        return EdgeList(*edges)


class Sequence(EdgeFeaturizer):
    """Edges between residues of one chain at most ``k`` positions apart; symmetric.

    Parameters
    ----------
    k : int
        Largest difference of ``seq_pos``; 1 joins consecutive residues. A gap in the numbering separates its two ends.
    """

    needs_coordinates: ClassVar[bool] = False

    def __init__(self, *, k: Annotated[int, Ge(1)] = 1) -> None:
        super().__init__()
        self.k = k

    def __call__(self, residues: Residues) -> EdgeList:
        return EdgeList(*neighbors.sequence(residues.pos, residues.chain_number, residues.seq_pos, self.k))


class SequenceOffset(EdgeFeaturizer):
    """Edges from each residue j to the residue of the same chain ``offset`` positions further.

    With several of these featurizers, each offset is a separate relation (``edge_kind``).

    Parameters
    ----------
    offset : int
        ``seq_pos[i] - seq_pos[j]``, not 0.
    """

    needs_coordinates: ClassVar[bool] = False

    def __init__(self, *, offset: int = 1) -> None:
        super().__init__()
        if not isinstance(offset, int) or offset == 0:
            raise OptionError(f"sequence_offset: invalid offset={offset!r}. Use an integer other than 0.")
        self.offset = offset

    def __call__(self, residues: Residues) -> EdgeList:
        seq_pos = residues.seq_pos
        edges = neighbors.sequence(residues.pos, residues.chain_number, seq_pos, abs(self.offset))
        return EdgeList(*edges[:, seq_pos[edges[1]] - seq_pos[edges[0]] == self.offset])


_POINTS: dict[str, Callable[[Residues], np.ndarray]] = {
    "node": lambda residues: residues.pos,
    "cb": cb_or_ca,
    "centroid": sidechain_centroid,
}


def _edges_between(residues: Residues, of: str, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return edges ``(2, E)`` between one point per residue, sorted by the distance of the nodes."""
    edges = find(_POINTS[of](residues))
    return edges if of == "node" else neighbors.sort_edges(residues.pos, edges)


def _require_point_nodes(name: str, of: str, separation: int) -> None:
    if of != "node":
        raise WiringError(f"{name}: of={of!r} joins residues, but nodes are others. Omit of=.")
    if separation:
        raise WiringError(f"{name}: separation={separation} counts residues, but nodes are others. Omit separation=.")


def _select_separated(residues: Residues, edges: np.ndarray, separation: int) -> np.ndarray:
    """Keep ``(2, E)`` edges between chains or with at least this sequence separation."""
    chain, seq_pos = residues.chain_number[edges], residues.seq_pos[edges]
    return edges[:, (chain[0] != chain[1]) | (abs(seq_pos[0] - seq_pos[1]) >= separation)]
