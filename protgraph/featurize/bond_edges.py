"""Edges along covalent bonds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

import numpy as np
from annotated_types import Gt

from protgraph.data.graph.conformity import Conformity
from protgraph.featurize.base import EdgeFeaturizer, EdgeList
from protgraph.structure.chemistry.bonds import (
    DISULFIDE,
    covalent_bonds,
    disulfide_bonds,
    ligand_bonds,
    ligand_links,
    peptide_bonds,
)
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues

__all__ = ["AtomPairs", "CovalentBond", "Disulfide", "PeptideBond", "residue_edges"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "covalent_bond": "CovalentBond",
        "disulfide": "Disulfide",
        "peptide_bond": "PeptideBond",
    },
}


class AtomPairs(EdgeFeaturizer):
    """Base class of symmetric edges from atom pairs: two residues are joined if any two of their atoms are."""

    conformity = Conformity(proteins="packed")

    @abstractmethod
    def pairs(self, residues: Residues) -> np.ndarray:
        """Return atom pairs, ``(2, P)`` int64, each once or in both orders; pairs within a residue are allowed."""

    def __call__(self, residues: Residues) -> EdgeList:
        return residue_edges(residues, residues.atom_residue[self.pairs(residues)])

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the pairs whose atoms are both nodes, in both directions, each once."""
        pairs = np.unique(np.sort(self._ends(residues, nodes), axis=0), axis=1)
        return EdgeList(*neighbors.to_undirected(nodes.pos, pairs))

    def _ends(self, residues: Residues, nodes: NodeAtoms) -> np.ndarray:
        """Return the pairs whose atoms are both nodes, as nodes, ``(2, P)`` int64."""
        ends = nodes.of_atoms(self.pairs(residues))
        return ends[:, (ends >= 0).all(0)]


def residue_edges(residues: Residues, pairs: np.ndarray) -> EdgeList:
    """Return symmetric edges of residue pairs, ``(2, P)`` int64, without duplicates and pairs within one residue."""
    n, ends = len(residues), np.sort(pairs, axis=0)
    codes = np.unique((ends[0] * n + ends[1])[ends[0] != ends[1]])
    return EdgeList(*neighbors.to_undirected(residues.pos, np.stack(np.divmod(codes, n))))


class PeptideBond(AtomPairs):
    """Edges between consecutive residues of a chain without a gap; symmetric.

    Notes
    -----
    C and N at most 2.5 Å apart are bonded; in CA traces, CA at most 4.3 Å apart
    (:func:`protgraph.structure.residues.chain_breaks.linked_to_next`).
    """

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the atoms C and N of each peptide bond, ``(2, P)`` int64."""
        return peptide_bonds(residues)

    def __call__(self, residues: Residues) -> EdgeList:
        i = np.flatnonzero(linked_to_next(residues))
        return EdgeList(*neighbors.to_undirected(residues.pos, np.stack([i, i + 1])))


class CovalentBond(AtomPairs):
    """Edges along covalent bonds; symmetric. Between residues these are peptide bonds and disulfides.

    Notes
    -----
    Between atoms, the bonds of the Chemical Component Dictionary are added and, if ligands are nodes, their bonds to
    the protein and to each other: :func:`protgraph.structure.chemistry.bonds.covalent_bonds`,
    :func:`~protgraph.structure.chemistry.bonds.ligand_links`.
    """

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the atoms of each covalent bond of the protein, ``(2, P)`` int64."""
        return covalent_bonds(residues)

    def _ends(self, residues: Residues, nodes: NodeAtoms) -> np.ndarray:
        ends, ligands = super()._ends(residues, nodes), residues.ligands
        if ligands is None or not nodes.is_ligand.any():
            return ends
        ligand_nodes = np.flatnonzero(nodes.is_ligand)
        all_nodes = np.concatenate([nodes.of_atoms(np.arange(len(residues.atom_name))), ligand_nodes])
        return np.concatenate([ends, ligand_nodes[ligand_bonds(ligands)], all_nodes[ligand_links(residues)]], axis=1)


class Disulfide(AtomPairs):
    """Edges between cysteines whose SG are at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    References
    ----------
    Tina, Bhadra & Srinivasan 2007, doi:10.1093/nar/gkm423 (2.2 Å), as in Graphein's ``add_disulfide_interactions``.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] = DISULFIDE) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the SG atoms of each disulfide bond, ``(2, P)`` int64."""
        return disulfide_bonds(residues, self.cutoff)
