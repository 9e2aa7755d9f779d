"""Dataset db55_interface: labels of a complex against all distances, their transfer to partners of other numbering."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from biotite.structure import AtomArray
from biotite.structure.io.pdb import PDBFile
from protgraph_datasets.db55_interface.dataset import FOLDER, Db55Interface
from protgraph_datasets.db55_interface.interface_labels import CUTOFF, counterparts, read_bound
from protgraph_plugins.published.preparation import prepare_dataset
from protgraph_plugins.published.source_folder import SourceFolder

from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors import residue_sasa

ENTRY = FOLDER.parent / "pdb_core" / "structures" / "5mtn.bcif"  # SH2 domain A and monobody B


def write_pdb(path: Path, atoms: AtomArray) -> Path:
    file = PDBFile()
    file.set_structure(atoms)
    file.write(path)
    return path


@pytest.fixture(scope="module")
def complex_files(tmp_path_factory) -> tuple[Path, Path]:
    folder, atoms = tmp_path_factory.mktemp("complex"), load_structure(ENTRY).atoms
    atoms = atoms[~atoms.hetero]
    return tuple(write_pdb(folder / f"{c}.pdb", atoms[atoms.chain_id == c]) for c in "AB")


def test_residues_in_contact_are_those_of_all_distances(complex_files):
    parts = [clean(load_structure(path)) for path in complex_files]
    distance = np.linalg.norm(parts[0].atom_pos[:, None] - parts[1].atom_pos[None], axis=-1)
    for part, found, nearest in zip(parts, read_bound(*complex_files), (distance.min(1), distance.min(0)), strict=True):
        expected = [bool((nearest[part.atom_residue == i] <= CUTOFF).any()) for i in range(len(part))]
        assert found.in_contact.tolist() == expected and 5 < sum(expected) < len(part)
        lost = found.loses_area
        assert (lost & found.in_contact).sum() > 0.7 * found.in_contact.sum() and lost.sum() < 0.5 * len(part)


def test_residues_beyond_the_reach_of_the_partner_lose_no_area(complex_files):
    """Spheres of two atoms meet within 2 (1.88 + 1.4) = 6.56 Å; areas of two orientations differ by more than 1 Å²."""
    parts = [clean(load_structure(path)) for path in complex_files]
    distance = np.linalg.norm(parts[0].atom_pos[:, None] - parts[1].atom_pos[None], axis=-1)
    for part, found, nearest in zip(parts, read_bound(*complex_files), (distance.min(1), distance.min(0)), strict=True):
        reach = np.full(len(part), np.inf)
        np.minimum.at(reach, part.atom_residue, nearest)
        assert (reach > 6.6).sum() > 10
        assert not found.loses_area[reach > 6.6].any()
        change = residue_sasa(part) - residue_sasa(part, rotate=False)
        assert np.abs(change).max() > 1  # what the label would mistake for lost area


def test_labels_reach_an_unbound_partner_with_other_names_numbers_and_gaps(complex_files, tmp_path):
    bound = clean(load_structure(complex_files[0]))
    atoms = load_structure(complex_files[0]).atoms.copy()
    first = np.unique(atoms.res_id)[:3]
    atoms = atoms[~np.isin(atoms.res_id, first)]
    copy = atoms.copy()  # another chain of the same sequence, far away
    copy.coord += 200
    order = np.unique(atoms.res_id, return_inverse=True)[1]
    for part, chain in ((atoms, "X"), (copy, "W")):
        part.chain_id = np.full(len(part), chain)
        part.res_id, part.ins_code = order + 7, np.full(len(part), "")
    unbound = clean(load_structure(write_pdb(tmp_path / "u.pdb", copy + atoms)))
    rows = counterparts(unbound, bound)
    assert (rows[unbound.chain == "W"] == -1).all()
    near = rows[unbound.chain == "X"]
    assert (near >= 0).all()
    np.testing.assert_allclose(unbound.pos[unbound.chain == "X"], bound.pos[near], atol=0.002)


def test_unrelated_chains_have_no_counterparts(complex_files):
    first, second = (clean(load_structure(path)) for path in complex_files)
    assert (counterparts(first, second) == -1).all()


def test_partners_follow_their_complex_and_those_without_a_relative_in_training_come_twice(complex_files, tmp_path):
    root = tmp_path / "data" / "benchmark5.5"
    (root / "structures").mkdir(parents=True)
    (root / "cv" / "cv_0").mkdir(parents=True)
    splits = {"train": ["1AHW"], "val": ["1EWY"], "test": ["1JPS", "1IRA"]}  # 1JPS is in the cluster of 1AHW
    for split, names in splits.items():
        (root / "cv" / "cv_0" / f"{split}.txt").write_text("\n".join(names))
        for name in names:
            for side, path in zip("rl", complex_files, strict=True):
                for state in "ub":
                    shutil.copy(path, root / "structures" / f"{name}_{side}_{state}.pdb")
    proteins = list(Db55Interface(folder=str(tmp_path)).convert(SourceFolder(tmp_path, tmp_path / "scratch")))
    assert [(p.id, p.split) for p in proteins[-2:]] == [
        ("1IRA_r_no_homolog", "test_no_homolog"),
        ("1IRA_l_no_homolog", "test_no_homolog"),
    ]
    assert {p.id: p.split for p in proteins[:8]} == {f"{n}_{s}": k for k, v in splits.items() for n in v for s in "rl"}
    assert all(not np.isnan(v).any() for p in proteins for v in p.residue_labels.values())


@pytest.mark.slow
def test_the_real_archive_gives_the_counts_of_the_card(shared_data, tmp_path):
    dataset = Db55Interface(folder=str(tmp_path / "a"))
    result = prepare_dataset(dataset, shared_data / "benchmark" / "db55_interfaces")  # raises where counts differ
    assert result.proteins == 526 and result.without_ca == ()
