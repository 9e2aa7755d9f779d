"""Geometric descriptors per residue or atom: angles, secondary structure, exposure, surface area."""

from protgraph.structure.descriptors.backbone_geometry import (
    CB_C,
    CB_CROSS,
    CB_N,
    backbone_dihedrals,
    beta_carbon,
    cb_or_ca,
    dihedral_angle,
    sidechain_centroid,
    virtual_cb,
)
from protgraph.structure.descriptors.ca_trace import p_sea, sidechain_direction, trace_angles
from protgraph.structure.descriptors.dssp import DSSP_STATES, dssp, three_states
from protgraph.structure.descriptors.internal_coordinates import (
    SYMMETRIC_CHI,
    bond_angles,
    bond_lengths,
    sidechain_dihedrals,
)
from protgraph.structure.descriptors.sasa import MAX_SASA, PROBE, atom_sasa, protor_radii, residue_sasa
from protgraph.structure.descriptors.solvent_exposure import (
    cb_direction,
    contact_number,
    half_sphere_exposure,
    protrusion,
)
from protgraph.structure.vectors import length, squared, unit

__all__ = [
    "CB_C",
    "CB_CROSS",
    "CB_N",
    "DSSP_STATES",
    "MAX_SASA",
    "PROBE",
    "SYMMETRIC_CHI",
    "atom_sasa",
    "backbone_dihedrals",
    "beta_carbon",
    "bond_angles",
    "bond_lengths",
    "cb_direction",
    "cb_or_ca",
    "contact_number",
    "dihedral_angle",
    "dssp",
    "half_sphere_exposure",
    "p_sea",
    "protor_radii",
    "protrusion",
    "residue_sasa",
    "sidechain_centroid",
    "sidechain_dihedrals",
    "sidechain_direction",
    "three_states",
    "trace_angles",
    "length",
    "squared",
    "unit",
    "virtual_cb",
]
