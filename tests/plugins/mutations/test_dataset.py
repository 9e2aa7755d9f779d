"""Datasets of mutations: variants of structures, failures for those that do not fit, counts of the card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.mutations import MutationDataset, SourceVariant
from protgraph_plugins.published.preparation import damaged_files, prepare_dataset
from protgraph_plugins.published.source_folder import SourceProtein

from protgraph.errors import DatasetError

CARD = """
name = "tiny_mutations"
version = "1"
license = "CC0-1.0"
citation = "none"
description = "Two entries."
[splits]
rule = "given"
train = { proteins = 2, residues = 46 }
test = { proteins = 1, residues = 76 }
[tasks.ddg_stability]
level = "graph"
kind = "regression"
size = 1
names = ["ddg_stability"]
head = "mutation"
labels = "made up"
examples = "all"
splits.train = { proteins = 2, residues = 46, labeled = 2 }
splits.test = { proteins = 1, residues = 76, labeled = 1 }
"""
ROWS = [
    SourceVariant("row 1", "1crn", "A:T1A", "train", 0.5, {"FoldX": 1.0}),
    SourceVariant("row 2", "1crn", "A:T2A", "train", -1.5),
    SourceVariant("row 3", "1crn", "A:A2T", "train", 9.0),  # the structure has T
    SourceVariant("row 4", "1crn", "A:T201A", "train", 9.0),
    SourceVariant("row 5", "1abc", "A:T1A", "train", 9.0),
    SourceVariant("row 6", "1ubq", "A:I44A,A:K48R", "test", 2.0),
    SourceVariant("row 7", "1ubq", "A:I44del", "test", 9.0),
    SourceVariant("row 8", "1ubq", "A:I44W", "test", np.nan),
]


def tiny(folder: Path, structures: Path, card: Path, rows: list[SourceVariant] = ROWS) -> MutationDataset:
    class TinyMutations(MutationDataset):
        card_path = card

        def convert(self, source):
            for name, split in (("1crn", "train"), ("1ubq", "test")):
                yield SourceProtein(name, structures / f"{name}.bcif", split, ("A",), f"cluster of {name}")

        def variants(self, source):
            yield from rows

    return TinyMutations(folder=str(folder))


@pytest.fixture
def dataset(tmp_path, structures_dir) -> MutationDataset:
    (tmp_path / "card.toml").write_text(CARD)
    (tmp_path / "source").mkdir()
    made = tiny(tmp_path / "made", structures_dir, tmp_path / "card.toml")
    assert prepare_dataset(made, tmp_path / "source").failures == 4
    return made


def test_every_row_is_an_example_or_a_failure(dataset):
    names = [example.id for example in dataset.examples("ddg_stability")]
    assert names == ["1crn:A:T1A", "1crn:A:T2A", "1ubq:A:I44A,A:K48R"]
    kinds = {row["row"]: row["kind"] for row in dataset.failures}
    assert kinds == {"row 3": "wild_type", "row 4": "unknown_residue", "row 5": "no_structure", "row 7": "deletion"}
    assert dataset.table.num_rows == 4 and not damaged_files(dataset)
    assert dataset.table["FoldX"].to_pylist() == [1.0, None, None, None]


def test_labels_have_mutations_and_value(dataset):
    example = dataset.examples("ddg_stability", "test")[0]
    labels = dataset.labels("ddg_stability", example)
    assert [str(m) for m in labels.mutations] == ["A:I44A", "A:K48R"]
    assert labels.align(dataset.read(example)).tolist() == [[2.0]]
    assert dataset.links(example) == {"cluster cluster of 1ubq"}


def test_a_variant_that_occurs_twice_is_an_error(tmp_path, structures_dir):
    (tmp_path / "card.toml").write_text(CARD)
    (tmp_path / "source").mkdir()
    made = tiny(tmp_path / "made", structures_dir, tmp_path / "card.toml", [ROWS[0], ROWS[0]])
    with pytest.raises(DatasetError, match="the same variant"):
        prepare_dataset(made, tmp_path / "source")
