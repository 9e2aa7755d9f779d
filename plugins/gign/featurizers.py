"""Edges between the atoms of a ligand and those of the protein: ``ligand_contact``."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from protgraph import EdgeFeaturizer, EdgeList, Residues
from protgraph.data import Conformity
from protgraph.errors import SelectionError
from protgraph.structure.neighbors import close_pairs_between, to_undirected
from protgraph.structure.residues import NodeAtoms

__all__ = ["LigandContact"]
ENTRY_POINTS = {"protgraph.featurizers": {"ligand_contact": "LigandContact"}}


class LigandContact(EdgeFeaturizer):
    """Edges between atoms of the protein and atoms of ligands at most ``cutoff`` apart; symmetric.

    Between residues: between two residues that are both in contact with one molecule.

    Parameters
    ----------
    cutoff : float
        Å, inclusive, between heavy atoms.
    required : bool
        False: a protein without a ligand has no edges.

    Raises
    ------
    SelectionError
        A ligand is required, and the protein has none.

    References
    ----------
    Yang et al. 2023, doi:10.1021/acs.jpclett.2c03906 (5 Å).
    """

    needs_ligands: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(offline={"required": False})

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] = 5.0, required: bool = True) -> None:
        super().__init__()
        self.cutoff = cutoff
        self.required = required

    def __call__(self, residues: Residues) -> EdgeList:
        self._check_ligands(residues)
        ligands = residues.ligands
        if ligands is None:
            return EdgeList(*np.zeros((2, 0), np.int64))
        atom, ligand_atom = close_pairs_between(residues.atom_pos, ligands.atom_pos, self.cutoff)
        touches = np.zeros((len(residues), len(ligands)), bool)
        touches[residues.atom_residue[atom], ligands.atom_molecule[ligand_atom]] = True
        num_shared = touches.astype(np.int64) @ touches.T.astype(np.int64)  # (N, N) molecules
        pairs = np.stack(np.nonzero(np.triu(num_shared, k=1)))
        return EdgeList(*to_undirected(residues.pos, pairs))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the edges between atoms of ligands and of the protein."""
        self._check_ligands(residues)
        protein = np.flatnonzero(~nodes.is_ligand)
        ligand = np.flatnonzero(nodes.is_ligand)
        i, j = close_pairs_between(nodes.pos[protein], nodes.pos[ligand], self.cutoff)
        return EdgeList(*to_undirected(nodes.pos, np.stack([protein[i], ligand[j]])))

    def _check_ligands(self, residues: Residues) -> None:
        """Raise if the protein has no ligand, and one is required."""
        if not self.required or (residues.ligands is not None and len(residues.ligands)):
            return
        raise SelectionError(
            f"{residues.name}: no ligand. Give a file with its ligand, or join protein and ligand: protgraph data "
            "join-ligands."
        )
