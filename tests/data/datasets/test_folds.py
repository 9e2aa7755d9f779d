"""Folds: each example in one test fold, groups undivided, balanced labels; as scikit-learn's splitters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from protgraph.data.datasets.card import parse_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.folds import assign_folds, fold_datasets
from protgraph.data.datasets.labels import ProteinLabels
from protgraph.errors import DatasetError, OptionError


class Grouped(Dataset):
    """Proteins p00, p01, … with a group and a yes/no label each; nothing is read."""

    def __init__(self, groups: list[int], labels: list[float]) -> None:
        self.groups, self.values = groups, labels
        counts = {"train": {"proteins": len(groups), "residues": 0}}
        task = {"level": "graph", "kind": "multilabel", "size": 1, "labels": "", "examples": "", "splits": counts}
        text = dict.fromkeys(("license", "citation", "description"), "")
        card = {"name": "g", "version": "1", **text, "splits": {"rule": "", **counts}, "tasks": {"y": task}}
        self.card = parse_card(card)

    def examples(self, task, split=None):
        return [Example(f"p{i:02}", Path(f"p{i:02}.pdb"), None, "train") for i in range(len(self.groups))]

    def links(self, example):
        return frozenset([f"group {self.groups[int(example.id[1:])]}"])

    def labels(self, task, example):
        return ProteinLabels(self.values[int(example.id[1:])])


def data(seed: int, proteins: int = 30, groups: int = 14) -> Grouped:
    rng = np.random.default_rng(seed)
    return Grouped(rng.integers(0, groups, proteins).tolist(), rng.integers(0, 2, proteins).astype(float).tolist())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("folds", [3, 5, "leave-one-group-out"])
def test_each_example_is_tested_once_and_no_group_is_divided(seed, folds):
    dataset = data(seed)
    assignment = assign_folds(dataset, "y", folds, seed=seed)
    parts = fold_datasets(dataset, "y", assignment, seed=seed)
    tested = [example.id for part in parts for example in part.examples("y", "test")]
    assert sorted(tested) == [f"p{i:02}" for i in range(30)]
    for part in parts:
        groups = {s: {dataset.groups[int(e.id[1:])] for e in part.examples("y", s)} for s in ("train", "val", "test")}
        assert all(groups.values())
        assert len(set.union(*groups.values())) == sum(map(len, groups.values()))


def test_leave_one_group_out_makes_the_folds_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.model_selection")
    dataset = data(0)
    fold = assign_folds(dataset, "y", "leave-one-group-out").fold
    expected = {tuple(test) for _, test in sklearn.LeaveOneGroupOut().split(fold, groups=dataset.groups)}
    assert {tuple(np.flatnonzero(fold == k)) for k in range(fold.max() + 1)} == expected


@pytest.mark.parametrize("seed", range(4))
def test_folds_are_balanced_as_well_as_those_of_scikit_learn(seed):
    sklearn = pytest.importorskip("sklearn.model_selection")
    dataset = data(seed, proteins=60, groups=30)
    y = np.array(dataset.values)
    ours = assign_folds(dataset, "y", 5, seed=seed).fold
    splitter = sklearn.StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    theirs = [test for _, test in splitter.split(y, y, dataset.groups)]

    def spread(tests):
        return np.std([y[test].sum() for test in tests]) + np.std([len(test) for test in tests])

    assert spread([ours == k for k in range(5)]) <= spread(theirs)


def test_every_fold_of_eleven_proteins_has_positives_if_there_are_enough():
    dataset = Grouped(list(range(11)), [1.0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1])
    parts = fold_datasets(dataset, "y", assign_folds(dataset, "y", 5))
    for part in parts:
        for split in ("train", "val", "test"):
            assert {dataset.values[int(e.id[1:])] for e in part.examples("y", split)} == {0.0, 1.0}


def test_versions_of_folds_differ():
    dataset = data(0)
    versions = {part.version for part in fold_datasets(dataset, "y", assign_folds(dataset, "y", 3))}
    assert len(versions) == 3


@pytest.mark.parametrize("folds", [1, 0, True, "leave-one-out", 2.0])
def test_invalid_folds_raise(folds):
    with pytest.raises(OptionError, match="leave-one-group-out"):
        assign_folds(data(0), "y", folds)


def test_more_folds_than_groups_raise():
    with pytest.raises(DatasetError, match="4 independent groups"):
        assign_folds(Grouped([0, 0, 1, 2, 3], [0.0] * 5), "y", 5)
