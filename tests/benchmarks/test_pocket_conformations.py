"""Comparison of conformations: which proteins are the same, carried labels, and differences on the same samples."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import protgraph as pg
from benchmarks.pocket_conformations import (
    Compared,
    LabeledProtein,
    SameProteins,
    best_match,
    compare,
    keys,
    pocket_overlap,
    print_scores,
    read_chains,
    words,
)


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


def test_a_chain_is_aligned_with_the_same_protein_only(ubiquitin, structures_dir):
    shorter = ubiquitin.select(np.arange(len(ubiquitin)) >= 5)
    renamed = replace(shorter, chain=np.full(len(shorter), "Q"), res_id=shorter.res_id + 100)
    match = best_match(renamed, ubiquitin)
    assert match.identity == 1.0
    assert np.array_equal(match.second, match.first + 5) and len(match.first) == len(ubiquitin) - 5
    assert best_match(renamed, pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))) is None


def test_a_labeled_protein_of_the_training_split_comes_first(ubiquitin, structures_dir, tmp_path):
    own = {"A": words(ubiquitin.res_name.tolist())}
    proteins = {}
    for file, split in (("first.bcif", "test"), ("second.bcif", "train"), ("other.bcif", "val")):
        shutil.copyfile(structures_dir / "1ubq.bcif", tmp_path / file)
        chains = own if split != "val" else {"A": {"ALA ALA ALA ALA ALA"}}
        proteins[file] = LabeledProtein(file, split, file, file, {}, chains)
    protein, structure, match = SameProteins(proteins, tmp_path).find(ubiquitin)
    assert (protein.file, len(structure), match.identity) == ("second.bcif", 76, 1.0)
    del proteins["second.bcif"]
    assert SameProteins(proteins, tmp_path).find(ubiquitin)[0].file == "first.bcif"


def test_labels_and_probabilities_are_of_the_same_residues(ubiquitin, structures_dir):
    shorter = ubiquitin.select(np.arange(len(ubiquitin)) >= 5)
    labels = {key: float(number % 3 == 0) for number, key in enumerate(keys(ubiquitin)) if number != 10}
    protein = LabeledProtein("1ubq.bcif", "test", "u", "u", labels, {})
    match = best_match(shorter, ubiquitin)
    compared = compare("x", shorter, protein, ubiquitin, match, pg.load_checkpoint("ligand_site"))
    expected = [float(number % 3 == 0) for number in range(5, len(ubiquitin)) if number != 10]
    assert compared.labels.tolist() == expected
    predictions = pg.predict("ligand_site", structures_dir / "1ubq.bcif", device="cpu")
    holo = {row[1:4]: float(row[-2]) for row in predictions.rows}
    rows = [number for number in range(5, len(ubiquitin)) if number != 10]
    values = [holo[keys(ubiquitin)[row]] for row in rows]
    assert compared.probability["holo"] == pytest.approx(values, abs=1e-5)
    assert np.array_equal(compared.probability["holo"], compared.probability["holo, chain alone"])


def test_equal_pockets_overlap_completely(ubiquitin):
    rows, probability = np.arange(len(ubiquitin)), np.full(len(ubiquitin), 0.5)
    assert pocket_overlap(ubiquitin, ubiquitin, probability, probability, rows, rows) == 1.0


def test_the_difference_of_equal_predictions_is_zero(capsys):
    rng = np.random.default_rng(0)
    compared = []
    for number in range(6):
        value = rng.random(20)
        labels = (rng.random(20) < value).astype(float)
        probability = {"other": value, "holo": value, "reversed": 1 - value}
        compared.append(Compared(str(number), "test", str(number // 2), labels, probability))
    print_scores("test", compared, "other")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| test | 6 | 3 | 120 | other |")
    assert lines[1].count("+0.000 [+0.000, +0.000]") == 2
    assert "+0.000 [" not in lines[2]


def test_chains_of_the_array_file_are_read(shared_data):
    path = shared_data / "benchmark" / "ligysis_human_chains" / "lbs_heavy.npz"
    chain = read_chains(path, ["1a52_A"])["1a52_A"]
    assert (len(chain), chain.chain_names) == (239, ("A",))
    bonds = np.linalg.norm(np.diff(chain.pos, axis=0), axis=1)
    assert np.median(bonds) == pytest.approx(3.8, abs=0.05)
