"""Graphs of atoms, ligands and assemblies from the command line."""

from __future__ import annotations

import pytest

from protgraph.data.store.graph_store import GraphStore
from protgraph.structure import clean, load_structure


@pytest.mark.slow
def test_atoms_and_ligands_are_nodes_on_request(run, structures_dir, tmp_path):
    path = structures_dir / "10sb.bcif"
    residues = clean(load_structure(path), ligands=True)
    atoms, ligands = len(residues.atom_name), len(residues.ligands.atom_name)
    for name, asked, nodes in (
        ("residues", (), len(residues)),
        ("backbones", ("--node-type", "backbone"), int(residues.backbone_mask.sum())),
        ("atoms", ("--node-type", "atom", "-f", "covalent_bond"), atoms),
        ("everything", ("--node-type", "atom", "--ligands"), atoms + ligands),
    ):
        result = run("featurize", path, "-o", tmp_path / name, *asked)
        assert result.code == 0, result.err
        store = GraphStore(tmp_path / name)
        assert store.sizes.tolist() == [nodes] and store.num_residues == len(residues)
        assert f"{len(residues)} residues" in result.out


def test_the_nodes_of_a_model_are_its_own(run, structures_dir, tmp_path):
    path = structures_dir / "1crn.bcif"
    assert run("featurize", path, "-o", tmp_path / "a", "--model", "schnet.atom").code == 0
    assert GraphStore(tmp_path / "a").sizes.tolist() == [327]
    refused = run("featurize", path, "-o", tmp_path / "b", "--model", "schnet.atom", "--node-type", "residue")
    assert refused.code == 2 and "'atom'" in refused.err


def test_ligands_ask_for_atoms(run, structures_dir, tmp_path):
    refused = run("featurize", structures_dir / "1crn.bcif", "-o", tmp_path / "a", "--ligands")
    assert refused.code == 2 and "--node-type atom" in refused.err


def test_an_assembly_has_the_copies_of_its_chains(run, shared_data, tmp_path):
    path = shared_data / "robustness" / "missing__1BHL.pdb"
    for name, asked in (("deposited", ()), ("built", ("--assembly", "1"))):
        assert run("featurize", path, "-o", tmp_path / name, *asked).code == 0
    one, two = (GraphStore(tmp_path / name)[0] for name in ("deposited", "built"))
    assert two.num_nodes == 2 * one.num_nodes and two.chain.unique().tolist() == [0, 1]
    assert sum(i.startswith("A-2:") for i in two.residue_ids) == one.num_nodes


def test_an_assembly_that_is_not_there_fails_with_what_is(run, structures_dir, tmp_path):
    failed = run("featurize", structures_dir / "1crn.bcif", "-o", tmp_path / "a", "--assembly", "1")
    assert failed.code == 2 and "describes none" in (tmp_path / "a.manifest.tsv").read_text()
