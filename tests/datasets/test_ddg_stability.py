"""Datasets of folding free energies: cards, signs, published scores recomputed, all rows accounted for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from protgraph_datasets.ddg_stability.dataset import FOLDER, KORPM
from protgraph_datasets.ddg_stability.korpm_tables import S461_METHODS, korpm_mutation, read_predictions
from protgraph_plugins.published.preparation import prepare_dataset
from protgraph_plugins.published.source_folder import read_tsv

import protgraph as pg
from protgraph.errors import DatasetError
from protgraph.file_io import unpack_tar

NAMES = ("ddg_stability", "ddg_ssym", "ddg_s461")


@pytest.fixture(scope="module")
def source(shared_data) -> Path:
    return shared_data / "benchmark" / "ddg_stability"


@pytest.fixture(scope="module")
def korpm(source, tmp_path_factory) -> Path:
    """Return the unpacked tables of the KORPM repository."""
    folder = tmp_path_factory.mktemp("korpm")
    unpack_tar(source / KORPM, folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_cards_have_license_unit_and_head(name, tmp_path):
    card = type(pg.datasets.create(name))(folder=str(tmp_path)).card
    assert card.name == name and card.provenance.checksums and card.provenance.sources
    target = card.tasks["ddg_stability"].target
    assert (target.unit, target.head_name, target.level) == ("kcal/mol", "mutation", "graph")
    for split, count in card.tasks["ddg_stability"].counts.items():
        assert count.proteins == count.labeled == card.splits[split].proteins
    assert bool(card.provenance.train_on) == ("train" not in card.splits)


def test_no_structure_or_cluster_is_in_two_splits():
    rows = read_tsv(FOLDER / "structures.tsv")
    tests = {
        row["cluster"]
        for name in ("structures.tsv", "ssym_structures.tsv")
        for row in read_tsv(FOLDER / name)
        if row["split"] not in ("train", "val")
    }
    clusters = {split: {row["cluster"] for row in rows if row["split"] == split} for split in ("train", "val")}
    assert not clusters["train"] & clusters["val"] and not (clusters["train"] | clusters["val"]) & tests
    assert len({row["id"] for row in rows}) == len(rows)


def test_most_mutations_destabilize_and_known_ones_have_the_known_sign():
    rows = read_tsv(FOLDER / "variants.tsv.gz")
    for split in ("train", "val", "test"):
        values = np.array([float(row["ddg"]) for row in rows if row["split"] == split])
        assert (values > 0).mean() > 0.7 and values.mean() > 0.5
    ssym = {
        (row["structure"], row["mutations"]): float(row["ddg"]) for row in read_tsv(FOLDER / "ssym_variants.tsv.gz")
    }
    # Barnase: a cavity in the core, and T4 lysozyme L99A (Eriksson et al. 1992, 5 kcal/mol)
    assert ssym["1BNIA", "A:I88A"] > 3 and ssym["1L63A", "A:L99A"] > 4


def test_reverse_mutations_of_ssym_have_the_negative_value():
    rows = read_tsv(FOLDER / "ssym_variants.tsv.gz")
    split = Counter(row["split"] for row in rows)
    assert split == {"direct": 342, "reverse": 342}
    values = {s: sorted(float(row["ddg"]) for row in rows if row["split"] == s) for s in split}
    assert values["direct"] == [-value for value in reversed(values["reverse"])]


def test_published_scores_are_recomputed_from_the_predictions(korpm):
    """The README of the repository has RMSE, MAE and Pearson correlation of each method on S461.

    The stored predictions of KORPM are of another run (.596, the README has .570), and those of Cartesian ddG have one
    row more than the README.
    """
    text = (korpm / "S461_results" / "README.md").read_text()
    names = {"FoldX": "FoldX", "EvoEF": "EvoFF", "DynaMut2": "Dynamut2", "PoPMuSiC-sym": "PopMs"}
    names |= {"DDGun3D": "DDgun3D", "ThermoNet": "ThermoNet", "ACDC-NN": "ACDCNN"}
    assert set(S461_METHODS) - set(names) == {"KORPM", "Cartesian ddG"}
    measured = read_predictions(korpm / "S461.txt", (1, 2, 2))
    for method, name in names.items():
        file, columns = S461_METHODS[method]
        predicted = read_predictions(korpm / "S461_results" / file, columns)
        pairs = np.array([(measured[key][0], value) for key, (_, value) in predicted.items()])
        rmse, mae, pearson = map(float, re.search(rf"^{name} .*$", text, re.MULTILINE)[0].split()[20:23])
        error = pairs[:, 1] - pairs[:, 0]
        assert len(pairs) == 461
        assert np.corrcoef(pairs.T)[0, 1] == pytest.approx(pearson, abs=0.0006), method
        assert np.sqrt((error**2).mean()) == pytest.approx(rmse, abs=0.0006), method
        assert np.abs(error).mean() == pytest.approx(mae, abs=0.0006), method


def test_a_mutation_of_another_form_is_an_error():
    assert korpm_mutation("SA11A") == ("A", "A:S11A") and korpm_mutation("GH52aD") == ("H", "H:G52[A]D")
    with pytest.raises(DatasetError, match="SA11"):
        korpm_mutation("SA11")


@pytest.mark.slow
def test_prepared_sets_have_the_counts_of_the_card_and_a_failure_for_every_other_row(source, tmp_path):
    expected = {"ddg_ssym": Counter(no_structure=4), "ddg_s461": Counter()}
    for name, failures in expected.items():
        dataset = type(pg.datasets.create(name))(folder=str(tmp_path / name))
        result = prepare_dataset(dataset, source)
        assert Counter(row["kind"] for row in dataset.failures) == failures
        assert result.failures == sum(failures.values())
        total = {"ddg_ssym": 684, "ddg_s461": 461}[name]
        assert len(dataset.examples("ddg_stability")) + result.failures == total
