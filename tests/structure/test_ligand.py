"""Ligands are what the report counts of them, with the atoms of the file, and never proteins."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.granularity import residue_nodes
from protgraph.data.graph import collate
from protgraph.data.node import node
from protgraph.featurize import featurize
from protgraph.structure import Residues, Structure, clean, load_structure
from protgraph.structure.bond import ligand_bonds

ENTRY = "10sb"


@pytest.fixture(scope="module")
def structure(structures_dir) -> Structure:
    return load_structure(structures_dir / f"{ENTRY}.bcif")


@pytest.fixture(scope="module")
def residues(structure) -> Residues:
    return clean(structure, ligands=True)


def test_they_are_those_that_the_report_counts_else(structure, residues):
    names, counts = np.unique(residues.ligands.res_name, return_counts=True)
    without = clean(structure)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == without.report.ligands
    assert residues.report == without.report.without("ligands") and without.ligands is None


def test_their_atoms_are_the_files_heavy_atoms(structure, residues):
    atoms, ligands = structure.atoms, residues.ligands
    for m in range(len(ligands)):
        own = (atoms.chain_id == ligands.chain[m]) & (atoms.res_id == ligands.res_id[m]) & (atoms.element != "H")
        own &= atoms.res_name == ligands.res_name[m]
        mine = ligands.atom_molecule == m
        assert ligands.atom_name[mine].tolist() == atoms.atom_name[own].tolist()
        assert np.array_equal(ligands.atom_pos[mine], atoms.coord[own])


def test_the_protein_is_the_same_with_them(structure, residues):
    without = clean(structure)
    for name in ("chain", "res_id", "aatype", "pos", "backbone", "seq_pos", "atom_pos", "atom_residue"):
        assert np.array_equal(getattr(residues, name), getattr(without, name), equal_nan=name == "backbone")


def test_a_chain_keeps_its_own(residues):
    for name in residues.chain_names:
        one = residues.chains([name])
        assert one.ligands.ids == [i for i in residues.ligands.ids if i.startswith(f"{name}:")]
    hidden = residues.hide("ligands")
    assert residues.hide("coordinates").ligands is None and hidden.ligands is None
    assert np.array_equal(hidden.atom_pos, residues.atom_pos)


def test_graphs_of_atoms_have_them_behind_the_protein(residues):
    graph = featurize(residues, [node("radius", radius=4.0), "covalent_bond", "dihedral"], nodes="atom")
    protein, own = len(residues.atom_name), len(residues.ligands.atom_name)
    assert graph.num_nodes == protein + own and graph.validate()
    assert not graph.is_ligand[:protein].any() and graph.is_ligand[protein:].all()
    assert (graph.aatype[protein:] == 20).all() and (graph.atom_type[protein:] == 37).all()
    assert (graph.dihedral[protein:] == 0).all() and (graph.element[protein:] > 0).all()
    assert len(residue_nodes(graph)) == len(residues)
    assert graph.residue.max() == len(residues) + len(residues.ligands) - 1
    assert set(graph.chain[protein:].tolist()) <= set(range(len(residues.chain_names) + len(residues.ligands)))
    bonds = graph.edge_index[:, graph.edge_kind[:, 1] == 1]
    inside = graph.is_ligand[bonds].all(0)
    assert inside.any() and (graph.residue[bonds[0, inside]] == graph.residue[bonds[1, inside]]).all()
    contacts = graph.edge_index[:, graph.edge_kind[:, 0] == 1]
    assert (graph.is_ligand[contacts].sum(0) == 1).any()
    assert collate([graph, graph]).num_nodes == 2 * graph.num_nodes


def test_other_graphs_do_not_have_them(residues):
    assert featurize(residues).num_nodes == len(residues)
    assert not featurize(residues, nodes="backbone").is_ligand.any()


def test_nucleotides_are_molecules_on_request_and_bonded_in_a_row(structures_dir):
    structure = load_structure(structures_dir / "1lcd.bcif")
    plain, alone = clean(structure), clean(structure, nucleic=True)
    both = clean(structure, nucleic=True, ligands=True)
    assert plain.report.nucleic == len(alone.ligands) == 22 and alone.report.nucleic == 0
    assert alone.report.ligands == {"NA": 1} and both.report.ligands == {} and len(both.ligands) == 23
    ligands, bonds = alone.ligands, ligand_bonds(alone.ligands)
    between = bonds[:, ligands.atom_molecule[bonds[0]] != ligands.atom_molecule[bonds[1]]]
    molecule = np.sort(ligands.atom_molecule[between], axis=0)
    assert (molecule[1] - molecule[0] == 1).all()  # two strands of eleven
    assert between.shape[1] == 20 and set(ligands.atom_name[between].ravel()) == {"O3'", "P"}
    graph = featurize(alone, ["covalent_bond"], nodes="atom")
    inside = int(graph.is_ligand[graph.edge_index].all(0).sum())
    assert inside == 2 * bonds.shape[1]


def test_noise_moves_them_as_it_moves_the_protein_without_them(structure, residues):
    moved, without = residues.with_noise(0.1, seed=3), clean(structure).with_noise(0.1, seed=3)
    assert np.array_equal(moved.atom_pos, without.atom_pos)
    step = moved.ligands.atom_pos - residues.ligands.atom_pos
    assert 0.05 < step.std() < 0.2 and (step != 0).all() and moved.ligands.atom_pos.dtype == np.float32
