"""A protein that is in two splits under two file names is named in the notes of a run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from protgraph.featurize.plan import FeaturePlan
from protgraph.labels import prepare
from protgraph.labels.checks import describe_split_overlap
from protgraph.task import builtin
from protgraph.train import fit
from tests.train.conftest import CHAINS, Small


class Copies(Small):
    """Small, and copies of two training files in the validation split."""

    def __init__(self, folder, copies) -> None:
        super().__init__(folder, {"train": CHAINS["train"], "val": (*CHAINS["val"], *copies)})


@pytest.fixture
def copied(structures_dir, tmp_path):
    """Return a folder with two structures of the training split under other names."""
    for name in {one[:4] for split in CHAINS.values() for one in split}:
        (tmp_path / f"{name}.bcif").symlink_to(structures_dir / f"{name}.bcif")
    for name, copy in (("1crn", "cpy1"), ("2erl", "cpy2")):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / f"{copy}.bcif")
    return tmp_path


@pytest.mark.slow
def test_proteins_of_two_splits_are_a_note_of_the_run(copied, tiny, quick):
    result = fit(tiny, Copies(copied, ("cpy1_A", "cpy2_A")), "helix", config=quick)
    [note] = [note for note in result.notes if "split" in note]
    assert "2 sequences of dataset 'small'" in note
    assert "'1crn_A' (train) = 'cpy1_A' (val)" in note and "'2erl_A' (train) = 'cpy2_A' (val)" in note


@pytest.mark.slow
def test_hidden_residue_types_are_compared_by_coordinates(copied, tmp_path):
    task = builtin.INVERSE_FOLDING
    prepared = prepare(Copies(copied, ("cpy1_A",)), task, FeaturePlan(["knn"]), cache=tmp_path / "cache")
    assert not np.any(prepared.splits["val"].values("aatype", 0) != 20)
    [note] = describe_split_overlap("small", prepared.splits)
    assert "1 sequence of" in note and "'cpy1_A' (val)" in note


@pytest.mark.slow
@pytest.mark.parametrize("node_type", ["residue", "backbone"])
def test_different_proteins_and_copies_within_a_split_are_no_note(structures_dir, tmp_path, node_type):
    data, task = Small(structures_dir), builtin.SECONDARY_STRUCTURE
    assert {"1hf9_A", "1hf9_B"} <= set(CHAINS["train"])  # two chains of one sequence
    data.labels = lambda task, example: None
    data._task = lambda name: None
    prepared = prepare(data, task, FeaturePlan([], node_type=node_type), cache=tmp_path)
    assert describe_split_overlap("small", prepared.splits) == ()
