"""Balanced splits against brute force over all assignments, and the labels of every split."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from protgraph.data.datasets.splits import (
    FRACTIONS,
    SplitUnit,
    assign_random_splits,
    balance_groups,
    group_split,
    imbalance,
    label_strata,
)
from protgraph.data.datasets.target import Target

FACTOR, SLACK = 1.5, 0.05  # the imbalance is at most FACTOR times the least possible one, plus SLACK


def tiny_case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, shares, weights and required columns of four to seven groups."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(4, 8))
    size = rng.integers(1, 4, groups)
    if seed % 2:  # residues with rare positives
        labels = np.stack([rng.integers(50, 500, groups), rng.integers(0, 40, groups) * (rng.random(groups) < 0.6)], 1)
        required = np.array([0.0, 1.0, 1.0])
    else:  # classes of proteins
        labels, required = rng.multinomial(size, [0.5, 0.3, 0.2]), np.array([0.0, *[4 / 9] * 3])
    weights = np.array([1.0, *[1 / labels.shape[1]] * labels.shape[1]])
    return np.column_stack([size, labels]), np.array([0.8, 0.1, 0.1]), weights, required


@pytest.mark.parametrize("seed", range(12))
def test_imbalance_is_near_the_least_of_all_assignments(seed):
    counts, shares, weights, required = tiny_case(seed)
    every = np.array(list(product(range(3), repeat=len(counts))))  # (3^G, G)
    totals = np.einsum("mgs,gk->msk", (every[:, :, None] == np.arange(3)).astype(float), counts)
    required_all = required + np.eye(len(required))[0] * 100
    cost = imbalance(totals, shares, weights, required_all)
    ours = balance_groups(counts, shares, weights, required, seed=seed)
    place = int((every == ours).all(1).argmax())
    assert cost[place] <= FACTOR * cost.min() + SLACK


@pytest.mark.parametrize("seed", range(5))
def test_every_split_gets_positives_and_negatives_of_three_positive_proteins(seed):
    names = [f"p{i:02}" for i in range(11)]
    strata = label_strata(np.array([[float(i in (2, 5, 7))] for i in range(11)]), Target("y", "graph", "multilabel", 1))
    units = [SplitUnit(n, frozenset([n]), counts=strata.of(np.array([i]))) for i, n in enumerate(names)]
    assignment = assign_random_splits(units, fractions=FRACTIONS, seed=seed, strata=strata)
    labels = {split: {i in (2, 5, 7) for i in range(11) if assignment.splits[i] == split} for split in FRACTIONS}
    assert all(both == {True, False} for both in labels.values())
    assert assignment.splits.count("train") >= 7
    assert strata.text in assignment.rule


def test_linked_proteins_stay_together_although_labels_are_balanced():
    strata = label_strata(np.arange(12) % 2, Target("y", "graph", "classification", 2))
    units = [
        SplitUnit(f"p{i:02}", frozenset([f"s{i // 3}"]), counts=strata.of(np.array([i])))
        for i in range(12)  # four groups of three
    ]
    splits = assign_random_splits(units, fractions={"train": 0.5, "test": 0.5}, seed=0, strata=strata).splits
    assert all(len(set(splits[i : i + 3])) == 1 for i in range(0, 12, 3))
    assert splits.count("train") == 6


@pytest.mark.parametrize("seed", range(3))
def test_rare_residues_are_in_every_split(seed):
    residues = np.random.default_rng(seed).integers(100, 400, 30)
    positives = np.where(np.arange(30) % 10 == 3, 4, 0)  # three of thirty proteins
    counts = np.stack([residues - positives, positives], axis=1)
    splits = np.array(group_split(range(30), seed=seed, counts=counts, required=np.ones(2)))
    assert all(positives[splits == split].sum() > 0 for split in FRACTIONS)


def test_a_class_of_one_protein_is_in_the_training_split():
    y = np.array([0] * 6 + [1] * 6 + [2])
    strata = label_strata(y, Target("y", "graph", "classification", 3))
    splits = group_split(range(13), counts=strata.counts, required=strata.required)
    assert splits[12] == "train"


def test_values_are_balanced_by_range():
    values = np.random.default_rng(0).normal(size=(200, 1))
    strata = label_strata(values, Target("y", "graph", "regression", 1))
    splits = np.array(group_split(range(200), counts=strata.counts, required=strata.required))
    assert strata.counts.sum(1).tolist() == [1] * 200
    for split in ("val", "test"):  # four of twenty proteins in each fifth of the values
        assert strata.counts[splits == split].sum(0).tolist() == [4, 4, 4, 4, 4]


def test_order_of_proteins_does_not_change_balanced_splits():
    rng = np.random.default_rng(0)
    counts, order = rng.integers(0, 50, (40, 3)), rng.permutation(40)
    groups = [f"g{i // 2}" for i in range(40)]
    splits = group_split(groups, counts=counts, required=np.ones(3), seed=4)
    other = group_split([groups[i] for i in order], counts=counts[order], required=np.ones(3), seed=4)
    assert [splits[i] for i in order] == other


def test_unknown_labels_are_in_no_stratum():
    classes = label_strata(np.array([0, -1, 1]), Target("y", "node", "classification", 2))
    assert classes.counts.tolist() == [[1, 0], [0, 0], [0, 1]]
    ranges = label_strata(np.array([[np.nan], [1.0], [2.0]]), Target("y", "node", "regression", 1))
    assert ranges.counts.sum(1).tolist() == [0, 1, 1]
