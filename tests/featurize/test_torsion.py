"""Angles as cosine and sine with masks; symmetric side chains independent of atom names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph.featurize.backbone import BondGeometry, SidechainDihedral, TraceAngle
from protgraph.structure.descriptors.ca_trace import trace_angles
from protgraph.structure.descriptors.internal_coordinates import (
    SYMMETRIC_CHI,
    bond_angles,
    bond_lengths,
    sidechain_dihedrals,
)

PAIRS = {"D": ("OD1", "OD2"), "E": ("OE1", "OE2"), "F": ("CD1", "CD2"), "Y": ("CD1", "CD2")}


def test_angles_lie_on_circles_or_are_masked(proteins):
    for residues in proteins:
        angles = sidechain_dihedrals(residues)
        angles = np.where(SYMMETRIC_CHI[residues.aatype], 2 * angles, angles)
        features = SidechainDihedral()(residues)
        result = features["chi"][:, :4] + 1j * features["chi"][:, 4:]
        assert (features["chi_mask"] == np.isfinite(angles)).all()
        assert np.abs(result - np.exp(1j * np.nan_to_num(angles)) * features["chi_mask"]).max() < 1e-6
        features, angles = TraceAngle()(residues), trace_angles(residues)
        result = features["trace_angle"][:, ::2] + 1j * features["trace_angle"][:, 1::2]
        assert np.abs(result - np.exp(1j * np.nan_to_num(angles)) * features["trace_angle_mask"]).max() < 1e-6


def test_names_of_equivalent_atoms_do_not_matter(proteins):
    for residues in proteins[:6]:
        names, letters = residues.atom_name.copy(), np.array(list(residues.sequence))[residues.atom_residue]
        for letter, (one, two) in PAIRS.items():
            own = letters == letter
            names[own & (residues.atom_name == one)], names[own & (residues.atom_name == two)] = two, one
        before, after = SidechainDihedral()(residues), SidechainDihedral()(replace(residues, atom_name=names))
        assert (before["chi_mask"] == after["chi_mask"]).all()
        change = np.abs(before["chi"] - after["chi"])
        assert np.quantile(change, 0.99) < 0.15  # real groups are planar to some degrees only
        assert (
            np.abs(sidechain_dihedrals(residues) - sidechain_dihedrals(replace(residues, atom_name=names)))[
                SYMMETRIC_CHI[residues.aatype] & before["chi_mask"]
            ].min()
            > 2.5
        )  # the angles themselves are off by half a turn


def test_bonds_equal_the_descriptor(proteins):
    for residues in proteins[:6]:
        features = BondGeometry()(residues)
        for name, values in (("bond_length", bond_lengths(residues)), ("bond_angle", bond_angles(residues))):
            assert (features[f"{name}_mask"] == np.isfinite(values)).all()
            assert np.allclose(features[name], np.nan_to_num(values), atol=1e-6)
