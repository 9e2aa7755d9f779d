"""Bonds, hydrogen bonds, functional groups and van der Waals radii."""

from protgraph.structure.chemistry.bonds import (
    DISULFIDE,
    bonds_by_name,
    covalent_bonds,
    disulfide_bonds,
    ligand_bonds,
    ligand_links,
    peptide_bonds,
)
from protgraph.structure.chemistry.dssp_hbond import HBOND_ENERGY, BackboneHBonds, amide_hydrogen, backbone_hbonds
from protgraph.structure.chemistry.functional_groups import (
    ANIONS,
    CATIONS,
    HYDROPHOBIC,
    AromaticRings,
    aromatic_rings,
    atom_mask,
    atoms_by_name,
    close_atom_pairs,
    sidechain_mask,
)
from protgraph.structure.chemistry.hbond import HBOND_ANGLE, HBOND_DISTANCE, fixed_hydrogens, hydrogen_bonds
from protgraph.structure.chemistry.vdw import VDW_RADII, vdw_contacts, vdw_radii

__all__ = [
    "ANIONS",
    "CATIONS",
    "DISULFIDE",
    "HBOND_ANGLE",
    "HBOND_DISTANCE",
    "HBOND_ENERGY",
    "HYDROPHOBIC",
    "VDW_RADII",
    "AromaticRings",
    "BackboneHBonds",
    "amide_hydrogen",
    "aromatic_rings",
    "atom_mask",
    "atoms_by_name",
    "backbone_hbonds",
    "bonds_by_name",
    "close_atom_pairs",
    "covalent_bonds",
    "disulfide_bonds",
    "fixed_hydrogens",
    "hydrogen_bonds",
    "ligand_bonds",
    "ligand_links",
    "peptide_bonds",
    "sidechain_mask",
    "vdw_contacts",
    "vdw_radii",
]
