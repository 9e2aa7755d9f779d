"""Bonds of ligands that the dictionary lacks: stated by the file, or guessed from distances with a note."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from biotite.structure import AtomArray, BondList, info
from biotite.structure.io import pdb, pdbx
from protgraph_plugins.interactions import has_guessed_bonds, ligand_bonds

from protgraph.data.store.graph_shard import flatten_residues, slice_residues
from protgraph.featurize import FeaturePlan, GraphResult, iter_graphs
from protgraph.structure import Ligands, ReadOptions, Structure, clean, from_atom_array, load_structure


def imatinib(name: str) -> AtomArray:
    """Return the heavy atoms of imatinib with its 41 bonds; with another name, atoms are numbered by element."""
    atoms = info.residue("STI")
    atoms = atoms[atoms.element != "H"]
    atoms.chain_id[:], atoms.res_id[:], atoms.hetero[:] = "L", 1, True
    if name != "STI":
        atoms.res_name[:] = name
        atoms.atom_name = np.array([f"{element}{i}" for i, element in enumerate(atoms.element)])
    for column in ("b_factor", "occupancy"):
        atoms.add_annotation(column, float)
    return atoms


def bond_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {tuple(sorted(pair)) for pair in pairs.tolist()}


@pytest.fixture(scope="module")
def protein(structures_dir) -> AtomArray:
    return load_structure(structures_dir / "1crn.bcif").atoms


def complex_of(protein: AtomArray, ligand: AtomArray, *, with_bonds: bool) -> AtomArray:
    """Return protein and ligand, 15 Å beside its center, in one array."""
    ligand = ligand.copy()
    ligand.coord = ligand.coord - ligand.coord.mean(0) + protein.coord.mean(0) + np.float32([15, 0, 0])
    protein = protein.copy()
    if with_bonds:
        protein.bonds = BondList(len(protein))
    else:
        ligand.bonds = None
    return protein + ligand


def read(atoms: AtomArray, form: str, folder) -> Structure:
    """Write a complex in a format, and read it."""
    path = folder / f"bound.{form}"
    if form == "pdb":
        file = pdb.PDBFile()
        file.set_structure(atoms)
        file.write(path)
    elif form in ("cif", "bcif"):
        file = pdbx.CIFFile() if form == "cif" else pdbx.BinaryCIFFile()
        pdbx.set_structure(file, atoms, data_block="bound")
        file.write(path)
    else:
        return from_atom_array(atoms)
    return load_structure(path)


@pytest.mark.parametrize("form", ["pdb", "cif", "bcif", "array"])
@pytest.mark.parametrize("name", ["STI", "UNL", "LIG"])
@pytest.mark.parametrize("with_bonds", [True, False])
def test_ligand_has_its_41_bonds_under_any_name(protein, tmp_path, form, name, with_bonds):
    ligand = imatinib(name)
    structure = read(complex_of(protein, ligand, with_bonds=with_bonds), form, tmp_path)
    ligands = clean(structure, ligands=True).ligands
    bonds = bond_set(ligand_bonds(ligands).T)
    assert bonds == bond_set(ligand.bonds.as_array()[:, :2]) and len(bonds) == 41
    assert has_guessed_bonds(ligands).tolist() == [name != "STI" and not with_bonds]
    assert len(ligands.bonds) == (41 if with_bonds else 0)


def test_stated_bonds_are_used_even_if_distances_deny_them(protein, tmp_path):
    ligand = imatinib("UNL")
    ligand.coord *= 1.6
    structure = read(complex_of(protein, ligand, with_bonds=True), "pdb", tmp_path)
    assert ligand_bonds(clean(structure, ligands=True).ligands).shape == (2, 41)
    without = read(complex_of(protein, ligand, with_bonds=False), "pdb", tmp_path)
    assert ligand_bonds(clean(without, ligands=True).ligands).shape[1] < 41


def test_bonds_that_leave_an_atom_alone_are_not_used(protein, tmp_path):
    ligand = imatinib("UNL")
    ligand.bonds = BondList(len(ligand), ligand.bonds.as_array()[:5, :2])
    ligands = clean(read(complex_of(protein, ligand, with_bonds=True), "pdb", tmp_path), ligands=True).ligands
    assert len(ligands.bonds) == 5 and has_guessed_bonds(ligands).all() and ligand_bonds(ligands).shape == (2, 41)


def test_selected_molecules_keep_their_stated_bonds(protein, tmp_path):
    ligands = clean(read(complex_of(protein, imatinib("UNL"), with_bonds=True), "pdb", tmp_path), ligands=True).ligands
    count = len(ligands.atom_name)
    both = Ligands(
        *(np.repeat(getattr(ligands, name), 2) for name in ("chain", "res_id", "ins_code", "res_name")),
        *(np.concatenate([getattr(ligands, name)] * 2) for name in ("atom_pos", "atom_name", "atom_element")),
        atom_molecule=np.repeat([0, 1], count),
        bonds=np.concatenate([ligands.bonds, ligands.bonds + count]),
    )
    for keep in ([True, False], [False, True]):
        assert bond_set(both.select(np.array(keep)).bonds) == bond_set(ligands.bonds)


def test_bonds_by_distance_equal_those_of_the_dictionary_on_real_ligands(structures_dir):
    compared = 0
    for entry in ("1afs", "1a28", "1ncw", "1dpx", "1atp"):
        ligands = clean(load_structure(structures_dir / f"{entry}.bcif"), ligands=True).ligands
        organic = [set(ligands.atom_element[ligands.atom_molecule == m]) <= {*"CNOPS"} for m in range(len(ligands))]
        ligands = ligands.select(np.array(organic, bool))
        listed = bond_set(ligand_bonds(ligands).T)
        renamed = replace(ligands, res_name=np.full(len(ligands), "UNL"))
        assert bond_set(ligand_bonds(renamed).T) == listed, entry
        compared += len(listed)
    assert compared > 100


def test_guessed_bonds_are_a_note_and_stated_ones_are_not(protein, tmp_path):
    plan = FeaturePlan(["covalent_bond"], node_type="atom")
    for with_bonds, expected in ((False, ("bonds of ligand UNL are guessed from distances",)), (True, ())):
        read(complex_of(protein, imatinib("UNL"), with_bonds=with_bonds), "pdb", tmp_path)
        (result,) = iter_graphs(tmp_path / "bound.pdb", plan, read=ReadOptions(ligands=True))
        assert isinstance(result, GraphResult) and result.notes == expected
        inside = result.graph.is_ligand[result.graph.edge_index].all(0)
        assert int(inside.sum()) == 2 * 41


def test_stores_keep_the_stated_bonds_of_each_protein(protein, tmp_path):
    proteins = [
        clean(read(complex_of(protein, imatinib("UNL"), with_bonds=with_bonds), "pdb", tmp_path), ligands=True)
        for with_bonds in (True, False, True)
    ]
    proteins.insert(1, clean(from_atom_array(protein)))
    arrays, described = flatten_residues(proteins)
    for i, residues in enumerate(proteins):
        stored = slice_residues(arrays, described[i], i).ligands
        if residues.ligands is None:
            assert stored is None
        else:
            np.testing.assert_array_equal(stored.bonds, residues.ligands.bonds)
            np.testing.assert_array_equal(ligand_bonds(stored), ligand_bonds(residues.ligands))
