"""Datasets of deep mutational scans: published correlations recomputed, splits as published, sign of the scores."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from protgraph_datasets.fitness.dataset import SETS
from scipy.stats import spearmanr

import protgraph as pg
from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.structure.mutation import parse_mutations

SMALL = "dlg4-2022-abundance"


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "mutations" / "dms"


@pytest.fixture
def small_variants(folder, tmp_path, monkeypatch):
    """Return a function from the name of a dataset to the variants of one set."""
    monkeypatch.setattr("protgraph_datasets.fitness.dataset.SETS", {SMALL: SETS[SMALL]})

    def variants(name):
        dataset = type(pg.datasets.create(name))(folder=str(tmp_path))
        return list(dataset.variants(SourceFolder(folder, tmp_path)))

    return variants


@pytest.mark.parametrize("name", ["fitness", "fitness_mutation", "fitness_position"])
def test_cards_have_the_checksums_of_all_sets_and_the_sign_of_fitness(name, tmp_path):
    dataset = type(pg.datasets.create(name))(folder=str(tmp_path))
    checksums = dict(dataset.card.provenance.checksums)
    assert checksums.keys() == {*(f"{s}.tsv.gz" for s in SETS), "structures.tar.xz"}
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
    for name in ("fitness", "fitness_mutation", "fitness_position"):
        dataset = type(pg.datasets.create(name))(folder=str(tmp_path / name))
        assert prepare_dataset(dataset, folder).failures == 0
        assert dataset.table.num_rows == 63366 + 33441 + 6976 + 8251 + 37710 + 4387 + 6564 + 12374 + 88375
        values = dataset.labels("fitness", dataset.examples("fitness", "test")[0])
        assert np.isfinite(values.value).all()
