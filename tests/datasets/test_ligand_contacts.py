"""Ligand contacts: what counts as a ligand, against the recorded contacts of ``pdb_core``, and the label table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_datasets.ligand_site.ligand_contacts import ADDITIVES, MODIFICATIONS, find_ligand_contacts
from protgraph_plugins.published import read_tsv

import protgraph as pg
from protgraph.cli.app import main
from protgraph.errors import LabelError
from protgraph.structure import Residues, clean, load_structure

FOLDER = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core"
ROWS = {(row["entry"], row["chain"]): row for row in read_tsv(FOLDER / "chains.tsv")}


def read(entry: str) -> Residues:
    return clean(load_structure(FOLDER / "structures" / f"{entry}.bcif"), ligands=True, nucleic=True)


@pytest.mark.parametrize(
    ("entry", "chain"),
    [
        ("9dfn", "A"),  # SAM, CTP and an iron-sulfur cluster
        ("3mht", "A"),  # SAH, and DNA
        ("1rx2", "A"),  # folate and NADP
        ("8azr", "A"),  # GDP, a nucleotide
        ("4jvn", "A"),  # PAP, a nucleotide
        ("1pwc", "A"),  # penicillin, bonded to the protein
        ("1lcd", "A"),  # DNA alone
        ("5lwx", "A"),  # glycans alone
    ],
)
def test_the_number_of_contacts_is_that_of_pdb_core(entry, chain):
    residues = read(entry)
    contacts = find_ligand_contacts(residues)
    row = ROWS[entry, chain]
    in_chain = residues.chain == chain
    assert int(contacts.binds[in_chain].sum()) == int(row["n_ligand_residues_contact"])
    touched = contacts.ligands.select(contacts.contact[in_chain].any(axis=0))
    assert set(touched.res_name.tolist()) == set(filter(None, row["ligands"].split(",")))


@pytest.mark.parametrize(("entry", "name"), [("9dfn", "SAM"), ("3mht", "SAH"), ("1rx2", "FOL")])
def test_molecules_like_amino_acids_are_ligands_and_no_residues(entry, name):
    residues = read(entry)
    assert name not in residues.res_name
    assert name in find_ligand_contacts(residues).ligands.res_name


def test_each_ligand_has_its_residues_within_the_cutoff():
    residues = read("1rx2")
    contacts = find_ligand_contacts(residues, cutoff=4.0)
    ligands = contacts.ligands
    distance = np.linalg.norm(residues.atom_pos[:, None].astype(float) - ligands.atom_pos[None], axis=-1)
    for molecule in range(len(ligands)):
        near = (distance[:, ligands.atom_molecule == molecule] <= 4.0).any(axis=1)
        assert np.array_equal(np.unique(residues.atom_residue[near]), np.flatnonzero(contacts.contact[:, molecule]))
    assert contacts.contact.any() and len(ligands) == 2


def test_the_list_and_the_size_are_options():
    residues = read("5lwx")
    assert "NAG" in find_ligand_contacts(residues, left_out=ADDITIVES).ligands.res_name
    assert len(find_ligand_contacts(residues, left_out=ADDITIVES | MODIFICATIONS).ligands) == 0
    assert len(find_ligand_contacts(read("1rx2"), min_atoms=40).ligands) == 1  # NADP has 48, folate 32


def test_residues_without_their_ligands_are_an_error():
    with pytest.raises(LabelError, match="ligands=True"):
        find_ligand_contacts(clean(load_structure(FOLDER / "structures" / "1rx2.bcif")))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-o", "structures/1rx2.csv"], "exists"),
        (["-o", "labels.tsv"], ".csv"),
        (["-o", "x.csv", "--cutoff", "-1"], "--cutoff"),
        (["-o", "x.csv", "--min-atoms", "0"], "--min-atoms"),
    ],
)
def test_a_wrong_output_or_number_is_refused_and_no_file_changes(tmp_path, monkeypatch, capsys, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "structures").mkdir()
    (tmp_path / "structures" / "1rx2.csv").write_text("mine")
    source = str(FOLDER / "structures" / "1rx2.bcif")
    with pytest.raises(SystemExit) as stop:
        main(["data", "label-ligands", source, *more])
    assert stop.value.code == 2 and message in capsys.readouterr().err
    assert (tmp_path / "structures" / "1rx2.csv").read_text() == "mine" and not (tmp_path / "x.csv").exists()


def test_without_a_readable_structure_no_table_is_written(tmp_path):
    (tmp_path / "bad.pdb").write_text("HEADER\nEND\n")
    with pytest.raises(SystemExit) as stop:
        main(["data", "label-ligands", str(tmp_path / "bad.pdb"), "-o", str(tmp_path / "labels.csv")])
    assert stop.value.code == 2 and not (tmp_path / "labels.csv").exists()


def test_a_folder_of_structures_becomes_a_label_table_to_train_on(tmp_path, capsys):
    folder = tmp_path / "structures"
    folder.mkdir()
    for entry in ("1rx2", "1drf"):
        (folder / f"{entry}.bcif").symlink_to(FOLDER / "structures" / f"{entry}.bcif")
    (folder / "bad.pdb").write_text("HEADER\nEND\n")
    with pytest.raises(SystemExit) as stop:
        main(["data", "label-ligands", str(folder), "-o", str(tmp_path / "labels.csv")])
    assert stop.value.code == 1
    assert "bad.pdb" in capsys.readouterr().err
    dataset = pg.load_dataset([folder / "1rx2.bcif", folder / "1drf.bcif"], labels=tmp_path / "labels.csv")
    (task,) = dataset.tasks()
    positives = {e.id: int(dataset.labels(task, e).values.sum()) for e in dataset.examples(task)}
    assert task == "ligand_site" and sorted(positives.values()) == [20, 41]
