"""Proteins as residues: the inputs of structure featurizers, edge featurizers and models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from biotite.sequence import ProteinSequence

from protgraph.data.graph.protein_graph import collate
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure import Residues
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.structure.residues.atoms import nodes_of
from protgraph.testing.inputs import Inputs, Permutation, pair_permutation
from protgraph.testing.protein_fixtures import copy_residues, make_alignment
from protgraph.testing.symmetry import RigidTransforms

__all__ = ["StructureInputs"]

_OTHER_NUMBER = 1001  # added to author residue numbers


@dataclass(frozen=True, eq=False)
class StructureInputs(Inputs):
    """Proteins as residues.

    ``residues``: in float64. ``plan``: turns the residues into the batch that a model reads; None passes the residues
    themselves, to a featurizer.
    """

    residues: tuple[Residues, ...]
    plan: FeaturePlan | None = None

    @property
    def node_type(self) -> str:
        """The nodes of the graphs; see :data:`protgraph.structure.residues.atoms.NODE_TYPES`."""
        return "residue" if self.plan is None else self.plan.node_type

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of each protein."""
        return tuple(len(nodes_of(residues, self.node_type)) for residues in self.residues)

    def argument(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> Any:
        """Return copies of the residues, or the batch of their graphs for a featurizer of tensors."""
        copies = [copy_residues(residues, dtype) for residues in self.residues]
        if self.plan is None:
            return copies
        return collate([self.plan.precompute(residues) for residues in copies]).to(device)

    def moved(self, transforms: RigidTransforms) -> StructureInputs:
        """Return all proteins after the first transform, then all after the second, and so on."""
        copies = zip(*(transforms.move(residues) for residues in self.residues), strict=True)
        return replace(self, residues=tuple(residues for copy in copies for residues in copy))

    def single(self, protein: int) -> StructureInputs:
        """Return one protein alone."""
        return replace(self, residues=(self.residues[protein],))

    def permuted(self) -> tuple[StructureInputs, Permutation]:
        """Reverse the order of the chains; within a chain, residues keep the order of the sequence.

        The order is ``(M,)`` int64 per level.
        """
        orders = [np.argsort(-r.chain_number, kind="stable") for r in self.residues]
        starts = np.cumsum([0, *self.sizes])
        orders_of_nodes = []
        for residues, order_of_residues in zip(self.residues, orders, strict=True):
            place_of_residue = np.argsort(order_of_residues)
            molecules = 0 if residues.ligands is None else len(residues.ligands)
            place = np.concatenate([place_of_residue, len(residues) + np.arange(molecules)])  # ligands stay last
            orders_of_nodes.append(np.argsort(place[nodes_of(residues, self.node_type).residue], kind="stable"))
        node = torch.from_numpy(np.concatenate([o + s for o, s in zip(orders_of_nodes, starts, strict=False)]))
        permuted = tuple(_permute(r, o) for r, o in zip(self.residues, orders, strict=True))
        order = {"node": node, "graph": torch.arange(len(self.sizes)), "pair": pair_permutation(node, self.sizes)}
        return replace(self, residues=permuted), order

    def with_atoms_reversed(self) -> StructureInputs:
        """Return the same proteins with the atoms of each residue in the reverse order."""
        reversed_proteins = []
        for residues in self.residues:
            atoms = np.lexsort((-np.arange(len(residues.atom_residue)), residues.atom_residue))
            taken = {name: getattr(residues, name)[atoms] for name in ("atom_pos", "atom_name", "atom_element")}
            reversed_proteins.append(replace(residues, **taken))
        return replace(self, residues=tuple(reversed_proteins))

    def renamed(self) -> StructureInputs:
        """Return the same proteins under another name, with other author numbers of residues and names of chains.

        The alphabetical order of the new names is the reverse of that of the old ones.
        """
        renamed = []
        for residues in self.residues:
            names, number = np.unique(residues.chain, return_inverse=True)
            chain = np.array([f"x{len(names) - n:03}" for n in number])
            numbers = 3 * residues.res_id + _OTHER_NUMBER
            renamed.append(replace(residues, name="other", chain=chain, res_id=numbers))
        return replace(self, residues=tuple(renamed))

    def perturbed(self) -> StructureInputs:
        """Replace coordinates, types, residue numbers and B factors of all proteins; sizes stay."""
        return replace(self, residues=tuple(_perturb(r, seed) for seed, r in enumerate(self.residues)))

    def last_perturbed(self) -> StructureInputs:
        """Change everything about the last protein except its number of nodes."""
        return replace(self, residues=(*self.residues[:-1], _perturb(self.residues[-1], 0)))


def _permute(residues: Residues, order: np.ndarray) -> Residues:
    rows = ["chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos"]
    if residues.occupancy is not None:
        rows.append("occupancy")
    alignment = residues.alignment and residues.alignment.select(order)
    new_number = np.argsort(order)  # of each residue
    atoms = np.argsort(new_number[residues.atom_residue], kind="stable")
    taken = {name: getattr(residues, name)[order] for name in rows}
    taken |= {name: getattr(residues, name)[atoms] for name in ("atom_pos", "atom_name", "atom_element")}
    return replace(residues, **taken, alignment=alignment, atom_residue=new_number[residues.atom_residue][atoms])


def _perturb(residues: Residues, seed: int) -> Residues:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1.5, residues.backbone.shape)
    cut = residues.seq_pos >= len(residues) // 2  # a numbering gap in the middle
    ligands = residues.ligands
    if ligands is not None:
        pos = ligands.atom_pos + rng.normal(0, 1.5, ligands.atom_pos.shape)
        ligands = replace(ligands, atom_pos=pos, atom_element=np.roll(ligands.atom_element, 1))
    aatype = (residues.aatype + rng.integers(1, 20, len(residues))) % 20
    return replace(
        residues,
        ligands=ligands,
        alignment=make_alignment(aatype, seed=seed + 1),
        aatype=aatype,
        res_name=np.array([ProteinSequence.convert_letter_1to3(ALPHABET[t]) for t in aatype]),
        pos=residues.pos + noise[:, 1],
        backbone=residues.backbone + noise,
        atom_pos=residues.atom_pos + rng.normal(0, 1.5, residues.atom_pos.shape),
        b_factor=residues.b_factor[::-1].copy(),
        occupancy=None if residues.occupancy is None else residues.occupancy[::-1].copy(),
        res_id=residues.res_id + 5 * cut,
        seq_pos=residues.seq_pos + 5 * cut,
    )
