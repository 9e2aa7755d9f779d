"""Covalent bonds against biotite, within and between residues."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest
from biotite.structure import info
from protgraph_plugins.interactions import covalent_bonds, disulfide_bonds, peptide_bonds

from protgraph.structure import Residues, clean, load_structure


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::22]]


def as_atoms(residues: Residues) -> struc.AtomArray:
    """Return an ``AtomArray`` whose ``res_id`` is the residue index."""
    atoms = struc.AtomArray(len(residues.atom_name))
    atoms.coord = residues.atom_pos
    owner = residues.atom_residue
    atoms.chain_id, atoms.res_name = residues.chain[owner], residues.res_name[owner]
    atoms.res_id = owner
    atoms.atom_name, atoms.element = residues.atom_name, residues.atom_element
    return atoms


def as_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(min(p), max(p)) for p in pairs.T.tolist()}


@pytest.mark.slow
def test_bonds_within_residues_equal_those_of_biotite(proteins):
    for residues in proteins:
        theirs = struc.connect_via_residue_names(as_atoms(residues), inter_residue=False).as_array()[:, :2].T
        ours = covalent_bonds(residues)
        own = ours[:, residues.atom_residue[ours[0]] == residues.atom_residue[ours[1]]]
        known = np.array([bool(info.bonds_in_residue(str(name))) for name in residues.res_name])
        own = own[:, known[residues.atom_residue[own[0]]]]  # names without bonds in biotite have backbone bonds here
        assert as_set(own) == as_set(theirs.astype(np.int64)), residues.name


def test_disulfides_equal_those_of_biotite_except_for_its_dihedral_criterion(proteins):
    result = 0
    for residues in proteins:
        ours = as_set(disulfide_bonds(residues))
        sulfur = residues.atom_pos.astype(np.float64)
        expected = {
            (i, j)
            for i in np.flatnonzero(residues.atom_name == "SG")
            for j in np.flatnonzero(residues.atom_name == "SG")
            if i < j and np.linalg.norm(sulfur[i] - sulfur[j]) <= 2.2
        }
        assert ours == expected, residues.name
        result += len(ours)
    assert result > 10


def test_peptide_bonds_join_c_to_the_next_n(proteins):
    for residues in proteins:
        c, n = peptide_bonds(residues)
        assert (residues.atom_name[c] == "C").all() and (residues.atom_name[n] == "N").all()
        assert (residues.atom_residue[n] == residues.atom_residue[c] + 1).all()
        assert len(c) == len(residues) - len(residues.chain_names) - residues.report.gaps


@pytest.mark.slow
def test_names_of_other_programs_have_the_bonds_of_their_parent(proteins):
    residues = proteins[0]
    amber = residues.res_name.copy()
    amber[amber == "HIS"], amber[amber == "CYS"] = "HID", "CYX"  # HID is another molecule in the dictionary
    assert (amber != residues.res_name).any()
    assert np.array_equal(covalent_bonds(replace(residues, res_name=amber)), covalent_bonds(residues))


def test_hidden_types_keep_the_bonds_of_the_backbone(proteins):
    hidden = proteins[0].hide({"residue_type", "sidechain"})
    bonds = covalent_bonds(hidden)
    names = {frozenset(hidden.atom_name[pair].tolist()) for pair in bonds.T}
    assert names == {frozenset(p) for p in (("N", "CA"), ("CA", "C"), ("C", "O"), ("C", "N"))}
