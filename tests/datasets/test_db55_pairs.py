"""Dataset db55_pairs: pairs against all distances, partners far apart, labels of the prepared folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from biotite.structure.io.pdb import PDBFile
from protgraph_datasets.db55_pairs.dataset import GAP, Db55Pairs, pair_labels, separated
from protgraph_plugins.published import preparation
from protgraph_plugins.published.preparation import damaged_files, prepare_dataset
from protgraph_plugins.published.source_folder import SourceFolder

from protgraph.structure import Structure, clean, load_structure

ENTRY = Path(__file__).resolve().parents[2] / "datasets" / "pdb_core" / "structures" / "5mtn.bcif"  # chains A and B
NAMES = {"train": "2B42", "val": "1AY7", "test": "1AVX"}  # of the benchmark, for their clusters


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Three complexes of the benchmark, each with the files of one entry."""
    root = tmp_path_factory.mktemp("source") / "data" / "benchmark5.5"
    (root / "structures").mkdir(parents=True)
    (root / "cv" / "cv_0").mkdir(parents=True)
    atoms = load_structure(ENTRY).atoms
    for split, name in NAMES.items():
        (root / "cv" / "cv_0" / f"{split}.txt").write_text(f"{name}\n")
        for side, chain in zip("rl", "AB", strict=True):
            for state in "ub":
                file = PDBFile()
                file.set_structure(atoms[(atoms.chain_id == chain) & ~atoms.hetero])
                file.write(root / "structures" / f"{name}_{side}_{state}.pdb")
    return root.parents[1]


def partners(source: Path) -> list[Structure]:
    folder = source / "data" / "benchmark5.5" / "structures"
    return [load_structure(folder / f"2B42_{side}_u.pdb") for side in "rl"]


def test_pairs_in_contact_are_those_of_all_distances(source):
    parts = tuple(clean(structure) for structure in partners(source))
    labels = pair_labels(parts, parts, "x")
    whole = separated(*partners(source), "x")
    residues = clean(whole)
    y = labels.align(residues).reshape(len(residues), len(residues))
    first, second = (len(part) for part in parts)
    distance = np.linalg.norm(parts[0].atom_pos[:, None] - parts[1].atom_pos, axis=-1)
    for i in range(first):
        near = distance[parts[0].atom_residue == i].min(0)
        expected = [(near[parts[1].atom_residue == j] <= 5).any() for j in range(second)]
        assert y[i, first:].tolist() == y[first:, i].tolist() == expected
    assert np.isnan(y[:first, :first]).all() and np.isnan(y[first:, first:]).all()
    assert np.nansum(y) > 40


def test_partners_are_far_apart_in_a_pose_without_information(source):
    parts = partners(source)
    whole = separated(*parts, "x")
    residues = clean(whole)
    assert residues.chain_names == ("rA", "lB")
    is_ligand = residues.chain == "lB"
    distance = np.linalg.norm(residues.pos[~is_ligand][:, None] - residues.pos[is_ligand], axis=-1)
    assert distance.min() >= GAP
    for part, rows in zip(parts, (~is_ligand, is_ligand), strict=True):
        own, moved = clean(part).pos.astype(float), residues.pos[rows].astype(float)
        for x in (own, moved):
            x -= x.mean(0)
        lengths = [np.linalg.norm(x[:, None] - x, axis=-1) for x in (own, moved)]
        np.testing.assert_allclose(*lengths, atol=1e-3)
        assert np.sign(np.linalg.det(own.T @ own)) == np.sign(np.linalg.det(own.T @ moved))  # not mirrored
    again = separated(*parts, "x")
    assert np.array_equal(again.atoms.coord, whole.atoms.coord)
    assert not np.allclose(separated(*parts, "y").atoms.coord, whole.atoms.coord)


def test_a_prepared_folder_has_the_labels_of_the_source(source, tmp_path):
    dataset = Db55Pairs(folder=str(tmp_path))
    (tmp_path / "source").mkdir()
    preparation._write(dataset, SourceFolder(source, tmp_path / "source"), tmp_path, None)
    prepared = Db55Pairs(folder=str(tmp_path))
    assert damaged_files(prepared) == []
    splits = {example.id: example.split for example in prepared.examples("interface_pairs")}
    assert splits == {"2B42": "train", "1AY7": "val", "1AVX": "test", "1AVX_no_homolog": "test_no_homolog"}
    parts = tuple(clean(structure) for structure in partners(source))
    expected = pair_labels(parts, parts, "x")
    for example in prepared.examples("interface_pairs"):
        residues, labels = prepared.read(example), prepared.labels("interface_pairs", example)
        np.testing.assert_array_equal(labels.align(residues), expected.align(residues))
    (tmp_path / "pair_contacts.parquet").write_bytes(b"")
    assert damaged_files(prepared) == ["pair_contacts.parquet"]


@pytest.mark.slow
def test_the_real_archive_gives_the_counts_of_the_card(shared_data, tmp_path):
    dataset = Db55Pairs(folder=str(tmp_path / "a"))
    assert prepare_dataset(dataset, shared_data / "benchmark" / "db55_interfaces").proteins == 263
