"""paratope_joined: training antibodies that are not like those of validation and test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from protgraph_plugins.published import read_tsv
from protgraph_plugins.similarity import HomologyRule, find_homologs

import protgraph as pg


@pytest.fixture(scope="module")
def splits() -> dict[str, dict[str, str]]:
    """Antibody → its row of the package's table."""
    table = pg.datasets.create("paratope_joined").card_path.parent / "repository_labels.tsv.gz"
    return {row["id"]: row for row in read_tsv(table)}


def test_antibodies_of_entries_and_clusters_of_validation_and_test_are_not_trained_on(splits):
    held = [row for row in splits.values() if row["split"] in ("val", "test")]
    trained = [row for row in splits.values() if row["split_joined"] == "train"]
    assert all(row["split_joined"] == row["split"] for row in held)
    for key in (lambda row: row["id"][:4], lambda row: row["cluster"]):
        assert not {key(row) for row in held} & {key(row) for row in trained}
    counts = Counter(row["split_joined"] for row in splits.values())
    card = pg.datasets.create("paratope_joined").card
    assert {name: counts[name] for name in card.splits} == {name: c.proteins for name, c in card.splits.items()}


@pytest.mark.slow
def test_no_training_antibody_is_95_percent_identical_to_one_of_validation_or_test(shared_data, splits):
    rows = {Path(row["file"]).stem: row for row in read_tsv(shared_data / "sites" / "paratope" / "splits.tsv")}
    used = [name for name, row in splits.items() if row["split_joined"]]
    sequences = [rows[name]["sequence_H"] + rows[name]["sequence_L"] for name in used]
    groups = [int(splits[name]["split_joined"] == "train") for name in used]
    assert groups.count(1) == 255
    assert len(find_homologs(sequences, HomologyRule(identity=0.95), groups=groups)) == 0
    assert len(find_homologs(sequences, HomologyRule(identity=0.5), groups=groups)) > 0
