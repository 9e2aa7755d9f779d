"""Edge featurizers: which residues are neighbors, found once a protein (:mod:`protgraph.structure.neighbors.search`).

All of them write ``edge_index`` (2, E) int64, without self loops, ascending by target, within a target by CA–CA
distance, ties by source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from protgraph.errors import OptionError, WiringError
from protgraph.featurize.base import EdgeFeaturizer, EdgeList
from protgraph.structure.descriptors.representative_atoms import cb_or_ca, sidechain_centroid
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


class Knn(EdgeFeaturizer):
    """Edges from the k nearest residues to each.

    Parameters
    ----------
    k : int
        Neighbors of each residue; all others where a protein has fewer.
    of : {"node", "cb", "centroid", "any_atom"}
        Between what distances are measured: the nodes' positions (CA); CB, the virtual one where the file has none; the
        centers of the side chains (CA of glycine); the nearest two heavy atoms.
    separation : int
        Of these k, leave out those of the same chain that are fewer positions away. See ``distant_knn`` for k others.

    Notes
    -----
    Directed: i may be among the nearest of j without j being among those of i. Every residue has exactly min(k, N − 1)
    incoming edges, so that layers reduce by a reshape; not so with a separation. Of several at the k-th distance, those
    with the lower numbers. However neighbors are chosen, they come in the order of the nodes' distance.

    References
    ----------
    Virtual CB: see :func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`. Separation: Zhang et al. 2022, arXiv:2203.06125.
    """

    def __init__(self, *, k: int = 16, of: str = "node", separation: int = 0) -> None:
        super().__init__()
        if not (isinstance(k, int) and k >= 1):
            raise OptionError(f"knn takes a whole number k of at least 1, got {k!r}")
        self.k, self.of, self.separation = k, _measure("knn", of), _whole("knn", separation)

    def __call__(self, residues: Residues) -> EdgeList:
        if self.of == "any_atom":
            found = knn_by_atoms(residues.pos, residues.atom_pos, residues.atom_residue, self.k)
        else:
            found = _found(residues, self.of, partial(neighbors.knn, k=self.k))
        if self.separation > 1:
            return EdgeList(*_apart(residues, found, self.separation))
        return EdgeList(*found, degree=max(min(self.k, len(residues) - 1), 0))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        _of_nodes("knn", self.of, self.separation)
        return EdgeList(*neighbors.knn(nodes.pos, self.k), degree=max(min(self.k, len(nodes) - 1), 0))


class Radius(EdgeFeaturizer):
    """Edges between all residues at most ``radius`` apart; symmetric.

    Parameters
    ----------
    radius : float
        Å, inclusive.
    of : {"node", "cb", "centroid", "any_atom"}
        Between what distances are measured, see :class:`Knn`. With "any_atom" it is ``contact``.
    separation : int
        Leave out residues of the same chain that are fewer positions away.
    """

    def __init__(self, *, radius: float = 10.0, of: str = "node", separation: int = 0) -> None:
        super().__init__()
        if not (isinstance(radius, int | float) and radius > 0):
            raise OptionError(f"radius takes a radius above 0 Å, got {radius!r}")
        self.radius, self.of, self.separation = radius, _measure("radius", of), _whole("radius", separation)

    def __call__(self, residues: Residues) -> EdgeList:
        pos, atoms = residues.pos, residues.atom_pos
        if self.of == "any_atom":
            found = neighbors.contact(pos, atoms, residues.atom_residue, self.radius)
        else:
            found = _found(residues, self.of, partial(neighbors.radius, cutoff=self.radius))
        return EdgeList(*_apart(residues, found, self.separation))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        _of_nodes("radius", self.of, self.separation)
        return EdgeList(*neighbors.radius(nodes.pos, self.radius))


class Contact(EdgeFeaturizer):
    """Edges between all residues with two heavy atoms at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    Notes
    -----
    Neighbors in the chain count: their peptide bond is a contact. Where a task hides side chains, the backbone
    atoms that are left decide.
    """

    def __init__(self, *, cutoff: float = 4.5) -> None:
        super().__init__()
        if not (isinstance(cutoff, int | float) and cutoff > 0):
            raise OptionError(f"contact takes a cutoff above 0 Å, got {cutoff!r}")
        self.cutoff = cutoff

    def __call__(self, residues: Residues) -> EdgeList:
        found = neighbors.contact(residues.pos, residues.atom_pos, residues.atom_residue, self.cutoff)
        return EdgeList(*found)


class Sequence(EdgeFeaturizer):
    """Edges between residues of one chain at most ``k`` positions apart; symmetric.

    Parameters
    ----------
    k : int
        Largest difference of ``seq_pos``: 1 joins neighbors in the chain. A gap that the numbering shows
        keeps its two ends apart.
    """

    needs_coordinates: ClassVar[bool] = False

    def __init__(self, *, k: int = 1) -> None:
        super().__init__()
        if not (isinstance(k, int) and k >= 1):
            raise OptionError(f"sequence takes a whole number k of at least 1, got {k!r}")
        self.k = k

    def __call__(self, residues: Residues) -> EdgeList:
        return EdgeList(*neighbors.sequence(residues.pos, residues.chain_number, residues.seq_pos, self.k))


class SequenceOffset(EdgeFeaturizer):
    """Edges from each residue j to the one of its chain that is ``offset`` positions further, and to no other.

    Several of them make each offset a relation of its own (``edge_kind``).

    Parameters
    ----------
    offset : int
        ``seq_pos[i] - seq_pos[j]``, not 0.
    """

    needs_coordinates: ClassVar[bool] = False

    def __init__(self, *, offset: int = 1) -> None:
        super().__init__()
        if not isinstance(offset, int) or offset == 0:
            raise OptionError(f"sequence_offset takes a whole number offset other than 0, got {offset!r}")
        self.offset = offset

    def __call__(self, residues: Residues) -> EdgeList:
        seq_pos = residues.seq_pos
        found = neighbors.sequence(residues.pos, residues.chain_number, seq_pos, abs(self.offset))
        return EdgeList(*found[:, seq_pos[found[1]] - seq_pos[found[0]] == self.offset])


_POINTS: dict[str, Callable[[Residues], np.ndarray]] = {
    "node": lambda residues: residues.pos,
    "cb": cb_or_ca,
    "centroid": sidechain_centroid,
}


def _measure(name: str, of: str) -> str:
    if of not in (*_POINTS, "any_atom"):
        raise OptionError(f"{name} takes of= {', '.join(map(repr, (*_POINTS, 'any_atom')))}, got {of!r}")
    return of


def _found(residues: Residues, of: str, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Edges ``(2, E)`` found between one point a residue, in the order of the nodes' distance."""
    found = find(_POINTS[of](residues))
    return found if of == "node" else neighbors.sort_edges(residues.pos, found)


def _of_nodes(name: str, of: str, separation: int) -> None:
    if of != "node":
        raise WiringError(f"{name} with of={of!r} joins residues; nodes are atoms: leave of= out")
    if separation:
        raise WiringError(f"{name} with separation={separation} joins residues; nodes are atoms: leave separation= out")


def _whole(name: str, separation: int) -> int:
    if not (isinstance(separation, int) and separation >= 0):
        raise OptionError(f"{name} takes a whole number separation of at least 0, got {separation!r}")
    return separation


def _apart(residues: Residues, found: np.ndarray, separation: int) -> np.ndarray:
    """Those of ``(2, E)`` edges whose ends are in two chains, or at least so many positions apart."""
    chain, seq_pos = residues.chain_number[found], residues.seq_pos[found]
    return found[:, (chain[0] != chain[1]) | (abs(seq_pos[0] - seq_pos[1]) >= separation)]
