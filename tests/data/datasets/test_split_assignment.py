"""What belongs together is in one split, whatever the order; what a table says is followed, and its leaks are told."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.split_assignment import SplitUnit, assign_random_splits, splits_from_table
from protgraph.errors import DatasetError

SHARES = {"train": 0.6, "val": 0.2, "test": 0.2}


def made(n: int, seed: int) -> list[SplitUnit]:
    """Proteins of one to three chains out of few sequences, some in clusters."""
    rng = np.random.default_rng(seed)
    proteins = []
    for i in range(n):
        sequences = frozenset(f"s{k}" for k in rng.integers(0, 3 * n, rng.integers(1, 4)))
        clusters = frozenset(f"c{k}" for k in rng.integers(0, n, rng.integers(0, 2)))
        proteins.append(SplitUnit(f"p{i:03}", sequences, clusters))
    return proteins


@pytest.mark.parametrize("seed", range(5))
def test_no_sequence_and_no_cluster_is_in_two_splits(seed):
    proteins = made(40, seed)
    division = assign_random_splits(proteins, fractions=SHARES, seed=seed)
    for tie in ("sequences", "clusters"):
        found: dict[str, set[str]] = {}
        for protein, split in zip(proteins, division.splits, strict=True):
            for name in getattr(protein, tie):
                found.setdefault(name, set()).add(split)
        assert all(len(splits) == 1 for splits in found.values())
    assert set(division.splits) == set(SHARES)


def test_the_order_of_proteins_changes_nothing():
    proteins = made(30, 0)
    order = np.random.default_rng(1).permutation(30)
    splits = assign_random_splits(proteins, fractions=SHARES, seed=3).splits
    other = assign_random_splits([proteins[i] for i in order], fractions=SHARES, seed=3).splits
    assert [splits[i] for i in order] == list(other)


def test_the_seed_decides():
    proteins = [SplitUnit(f"p{i}") for i in range(30)]
    splits = {assign_random_splits(proteins, fractions=SHARES, seed=seed).splits for seed in (0, 1, 0, 1)}
    assert len(splits) == 2


def test_shared_sequences_are_counted():
    proteins = [SplitUnit("a", frozenset("x")), SplitUnit("b", frozenset("xy")), SplitUnit("c", frozenset("y")), SplitUnit("d")]
    division = assign_random_splits([*proteins, SplitUnit("e", frozenset("z"))], fractions={"train": 0.5, "test": 0.5}, seed=0)
    assert division.notes == ("3 of 5 proteins share a sequence with another one and are in one split with it",)
    assert len(set(division.splits[:3])) == 1
    assert assign_random_splits(proteins[2:], fractions={"train": 1.0}, seed=0).notes == ()


def test_what_cannot_be_read_takes_no_other_proteins_place():
    broken = [SplitUnit(f"b{i}", is_readable=False) for i in range(20)]
    good = [SplitUnit(name, frozenset(name)) for name in "xyz"]
    for seed in range(10):
        splits = assign_random_splits([*broken, *good], fractions={"train": 0.8, "val": 0.1, "test": 0.1}, seed=seed).splits
        assert set(splits[:20]) == {"train"}
        assert sorted(splits[20:]) == ["test", "train", "val"]


def test_too_few_to_divide_is_told():
    same = [SplitUnit(name, frozenset("x")) for name in "abcdef"]
    division = assign_random_splits(same, fractions=SHARES, seed=0)
    assert set(division.splits) == {"train"}
    assert division.notes[1:] == (
        "nothing is left for val and test: give more proteins, or a table with a column 'split'",
    )
    assert len(assign_random_splits([*same, SplitUnit("g"), SplitUnit("h")], fractions=SHARES, seed=0).notes) == 1


def test_a_given_split_is_followed_and_what_crosses_it_is_told():
    proteins = [SplitUnit("a", frozenset("x")), SplitUnit("b", frozenset("xy")), SplitUnit("c", frozenset("z"))]
    division = splits_from_table(["train", "test", "val"], proteins, "t.csv")
    assert division.splits == ("train", "test", "val")
    assert division.rule == "as t.csv says"
    assert division.notes == ("1 sequence is in more than one split (test, train), as t.csv has it",)
    assert splits_from_table(["train", "train", "val"], proteins, "t.csv").notes == ()


def test_a_split_without_train_is_refused():
    with pytest.raises(DatasetError, match=r"t.csv: no protein is in split 'train', only in \['a', 'b'\]"):
        splits_from_table(["b", "a"], [SplitUnit("x"), SplitUnit("y")], "t.csv")
