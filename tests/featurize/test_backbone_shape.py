"""Backbone features: values, masks and behavior under reflection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.featurize.backbone import Dihedral, Orientation, SidechainDirection
from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors import backbone_geometry as geometry
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.vectors import unit

ALL = [Dihedral, Orientation, SidechainDirection]


def test_dihedrals_lie_on_circles_or_are_masked(proteins):
    for residues in proteins:
        out = Dihedral()(residues)
        cos, sin, mask = out["dihedral"][:, :3], out["dihedral"][:, 3:], out["dihedral_mask"]
        assert np.allclose((cos**2 + sin**2)[mask], 1, atol=1e-6)
        assert (out["dihedral"].reshape(-1, 2, 3)[~np.stack([mask, mask], 1)] == 0).all()
        angles = geometry.backbone_dihedrals(residues)
        assert np.allclose(np.exp(1j * angles)[mask], (cos + 1j * sin)[mask], atol=1e-6)


def test_orientation_is_equivariant_under_reflection_but_the_side_chain_is_not(proteins, move):
    residues = proteins[0]
    before, after = Orientation()(residues)["orientation"], Orientation()(move(residues, -np.eye(3)))["orientation"]
    assert np.abs(after + before).max() < 1e-6
    (name,) = SidechainDirection.writes
    before, after = SidechainDirection()(residues)[name], SidechainDirection()(move(residues, -np.eye(3)))[name]
    assert np.abs(after + before).max() > 0.5  # hence the field is marked chiral


def test_orientation_points_to_the_next_and_the_previous_ca(proteins):
    for residues in proteins:
        orientation, linked = Orientation()(residues)["orientation"], linked_to_next(residues)
        for i in range(len(residues)):
            for row, j, there in ((0, i + 1, linked[i]), (1, i - 1, i > 0 and linked[i - 1])):
                step = residues.pos[j].astype(float) - residues.pos[i] if there else np.zeros(3)
                expected = step / np.linalg.norm(step) if there else step
                assert np.abs(orientation[i, row] - expected).max() < 1e-6, (residues.name, i)


def test_side_chains_point_to_the_real_cb(proteins):
    for residues in proteins:
        is_cb = residues.atom_name == "CB"
        owner = residues.atom_residue[is_cb]
        real = unit(residues.atom_pos[is_cb] - residues.pos[owner])
        cosine = (SidechainDirection()(residues)["sidechain_direction"][owner] * real).sum(1)
        assert np.median(cosine) > 0.995, residues.name


@pytest.mark.parametrize("atom", [0, 2, 3])
def test_missing_atoms_give_zeros_and_no_nan(proteins, atom):
    residues = proteins[0]
    backbone = residues.backbone.copy()
    backbone[5, atom] = np.nan
    poorer = replace(residues, backbone=backbone)
    for featurizer in ALL:
        for name, value in featurizer()(poorer).items():
            assert np.isfinite(value).all(), name
    mask = Dihedral()(poorer)["dihedral_mask"]
    assert mask[5].tolist() == {0: [False, False, True], 2: [False] * 3, 3: [True] * 3}[atom]
    assert (SidechainDirection()(poorer)["sidechain_direction"][5] == 0).all() == (atom != 3)


def test_insertion_codes_do_not_break_a_chain(shared_data):
    residues = clean(load_structure(shared_data / "formats" / "1igy.bcif"))
    inserted = residues.ins_code != ""
    assert inserted.sum() == 8
    assert Dihedral()(residues)["dihedral_mask"][inserted].mean() > 0.9
    assert np.linalg.norm(Orientation()(residues)["orientation"][inserted], axis=-1).mean() > 0.9
