"""Datasets of deep mutational scans: published correlations recomputed, splits as published, sign of the scores."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from protgraph_datasets.fitness.dataset import FOLDER, SETS, Fitness
from protgraph_plugins.mutations import parse_mutations
from protgraph_plugins.published import SourceFolder, prepare_dataset, read_tsv
from scipy.stats import spearmanr

import protgraph as pg
from protgraph.errors import DatasetError
from tests.datasets.public_layouts import lay_out_metl

SMALL = "dlg4-2022-abundance"


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "mutations" / "dms"


@pytest.fixture
def small_variants(folder, tmp_path, monkeypatch):
    """Return a function from the name of a dataset to the variants of one set."""
    monkeypatch.setattr("protgraph_datasets.fitness.dataset.SETS", {SMALL: SETS[SMALL]})
    source = SourceFolder(lay_out_metl(folder, tmp_path / "metl-pub", [SMALL]), tmp_path)

    def variants(name):
        return list(type(pg.datasets.create(name))(folder=str(tmp_path)).variants(source))

    return variants


def test_a_folder_like_the_repository_is_prepared(tmp_path, structures_dir, monkeypatch):
    """Two variants of one set, whose splits are numbers of rows from 0; residues of the source are counted from 0."""
    name, kind_folder = "pab1", {row["set"]: row["standard"] for row in read_tsv(FOLDER / "splits.tsv")}["pab1"]
    data = tmp_path / "metl-pub" / "data"
    splits = data / "dms_data" / name / "splits" / "main" / kind_folder
    for folder in (splits, data / "pdb_files"):
        folder.mkdir(parents=True)
    (data / "dms_data" / name / f"{name}.tsv").write_text(
        "variant\tnum_mutations\tscore\nT0A\t1\t0.5\nC3A,T1V\t2\t-1\nT1S\t1\t0\n"
    )
    (splits / "train.txt").write_text("1\n")
    (splits / "stest.txt").write_text("0\n")
    shutil.copy(structures_dir / "1crn.bcif", data / "pdb_files" / "pab1_cm.pdb")
    monkeypatch.setattr("protgraph_datasets.fitness.dataset.SETS", {name: ("pab1_cm", name)})
    monkeypatch.setattr(np, "load", lambda path: {name: np.array([-1230731, 5, 0], np.int32)})
    dataset = Fitness(folder=str(tmp_path / "made"))
    variants = list(dataset.variants(SourceFolder(tmp_path / "metl-pub", tmp_path)))
    assert [(v.mutations, v.split, v.value, v.columns["EVE"]) for v in variants] == [
        ("A:T1A", "test", 0.5, -12.30731),
        ("A:T2V,A:C4A", "train", -1.0, 0.00005),
        ("A:T2S", "left_out", 0.0, 0.0),
    ]
    with pytest.raises(DatasetError, match="differs from its card"):  # the card has all sets
        prepare_dataset(dataset, tmp_path / "metl-pub")


@pytest.mark.parametrize("name", ["fitness", "fitness_mutation", "fitness_position"])
def test_cards_have_the_files_of_all_sets_and_the_sign_of_fitness(name, tmp_path):
    dataset = type(pg.datasets.create(name))(folder=str(tmp_path))
    (repository,) = dataset.card.provenance.sources
    files = {row["path"] for row in read_tsv(dataset.card_path.parent / repository.files)}
    assert {f"data/dms_data/{s}/{s}.tsv" for s in SETS} <= files
    assert {f"data/pdb_files/{structure}.pdb" for structure, _ in SETS.values()} <= files
    assert dataset.card.name == name and dataset.sign == -1
    assert dataset.card.tasks["fitness"].target.head_name == "mutation"


def test_the_published_correlation_of_eve_is_recomputed(small_variants, folder):
    variants = small_variants("fitness")
    rivals = json.loads((folder / "rivals.json").read_text())["EVE"][SMALL]
    tests = (("fitness", "supertest"), ("fitness_position", "position_0_test"), ("fitness_mutation", "mutation_0_test"))
    subsets = [([v for v in small_variants(name) if v.split == "test"], key) for name, key in tests]
    for rows, key in [(variants, "all"), *subsets]:
        found = spearmanr([v.columns["EVE"] for v in rows], [v.value for v in rows])[0]
        assert len(rows) == rivals[key]["n"] and found == pytest.approx(rivals[key]["spearman"], abs=1e-4)


def test_splits_have_the_published_sizes(small_variants, folder):
    rows = {row["column"]: row for row in read_tsv(folder / "splits.tsv.gz") if row["set"] == SMALL}
    for name, column, test in (
        ("fitness", "standard_0", "stest"),
        ("fitness_mutation", "mutation_0", "test"),
        ("fitness_position", "position_0", "test"),
    ):
        counts = Counter(v.split for v in small_variants(name))
        row = rows[column]
        assert [counts[s] for s in ("train", "val", "test")] == [int(row[s]) for s in ("train", "val", test)], name


def test_positions_and_substitutions_of_the_tests_are_new(small_variants):
    for name, of in (("fitness_position", lambda m: m.residue), ("fitness_mutation", str)):
        seen: dict[str, set] = {}
        for v in small_variants(name):
            seen.setdefault(v.split, set()).update(of(m) for m in parse_mutations(v.mutations, join_commas=True))
        assert not seen["test"] & (seen["train"] | seen["val"]) and seen["test"]


@pytest.mark.slow
def test_prepared_sets_have_the_counts_of_the_cards_and_no_failures(folder, tmp_path):
    source = lay_out_metl(folder, tmp_path / "metl-pub", list(SETS))
    for name in ("fitness", "fitness_mutation", "fitness_position"):
        dataset = type(pg.datasets.create(name))(folder=str(tmp_path / name))
        assert prepare_dataset(dataset, source).failures == 0
        assert dataset.table.num_rows == 63366 + 33441 + 6976 + 8251 + 37710 + 4387 + 6564 + 12374 + 88375
        values = dataset.labels("fitness", dataset.examples("fitness", "test")[0])
        assert np.isfinite(values.value).all()
