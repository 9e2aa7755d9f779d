"""Side-chain dihedrals against biotite, bonds against ideal values of refinement."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest

from protgraph.structure import ALPHABET, Residues, clean, load_structure, to_atom_array
from protgraph.structure.descriptors.internal_coordinates import (
    SYMMETRIC_CHI,
    bond_angles,
    bond_lengths,
    sidechain_dihedrals,
)
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN
from protgraph.structure.residues.chain_breaks import linked_to_next

IDEAL_LENGTHS = (1.458, 1.525, 1.231, 1.329)  # Å, Engh & Huber 1991
IDEAL_ANGLES = np.radians((111.2, 120.8, 116.2, 121.7))


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::5][:52]]


def test_side_chain_dihedrals_equal_biotite(proteins):
    compared = 0
    for residues in proteins:
        standard = np.isin(residues.res_name, THREE_LETTER[:UNKNOWN])
        ours = sidechain_dihedrals(residues)[standard]
        theirs = struc.dihedral_side_chain(to_atom_array(residues))[:, :4][standard]
        assert (np.isnan(ours) == np.isnan(theirs)).all(), residues.name
        turn = np.abs((ours - theirs + np.pi) % (2 * np.pi) - np.pi)
        assert np.nanmax(turn) < 1e-4, residues.name  # biotite computes in float32
        compared += np.isfinite(ours).sum()
    assert compared > 15_000


def test_selenomethionine_has_the_angles_of_methionine(structures_dir):
    residues = clean(load_structure(structures_dir / "1a8o.bcif"))
    modified = residues.res_name == "MSE"
    assert modified.any()
    assert np.isfinite(sidechain_dihedrals(residues)[modified, :3]).all()


def test_symmetric_angles_are_those_of_asp_glu_phe_and_tyr():
    result = [f"{ALPHABET[t]}{k + 1}" for t, k in zip(*np.nonzero(SYMMETRIC_CHI), strict=True)]
    assert result == ["D2", "E3", "F2", "Y2"]


def test_missing_side_chains_and_hidden_types_have_no_angles(proteins):
    residues = proteins[0]
    assert np.isnan(sidechain_dihedrals(residues.hide("residue_type"))).all()
    bare = sidechain_dihedrals(residues.hide("sidechain"))
    assert np.isnan(bare).all()


def test_bonds_are_near_their_ideal_values(proteins):
    lengths = np.concatenate([bond_lengths(residues) for residues in proteins])
    angles = np.concatenate([bond_angles(residues) for residues in proteins])
    assert np.abs(np.nanmedian(lengths, 0) - IDEAL_LENGTHS).max() < 0.01
    assert np.degrees(np.abs(np.nanmedian(angles, 0) - IDEAL_ANGLES)).max() < 1


def test_bonds_equal_the_law_of_cosines(proteins):
    for residues in proteins[:5]:
        n, ca, c, _ = np.moveaxis(residues.backbone.astype(float), 1, 0)
        a, b, across = (np.linalg.norm(x, axis=1) for x in (n - ca, c - ca, n - c))
        expected = np.arccos((a**2 + b**2 - across**2) / (2 * a * b))
        assert np.allclose(bond_angles(residues)[:, 0], expected, atol=1e-9, equal_nan=True)


def test_bonds_to_the_next_residue_end_with_the_chain(proteins):
    for residues in proteins[:10]:
        there = linked_to_next(residues)
        assert (np.isfinite(bond_lengths(residues)[:, 3]) <= there).all()
        assert (np.isfinite(bond_angles(residues)[:, 2:]).all(1) <= there).all()


def test_coincident_atoms_have_no_angles(proteins):
    residues = proteins[0]
    point = replace(residues, backbone=np.ones_like(residues.backbone), atom_pos=np.ones_like(residues.atom_pos))
    assert np.isnan(bond_angles(point)).all()
    assert np.isnan(sidechain_dihedrals(point)).all()
