"""Assignment to splits: linked proteins stay together, order does not matter, leaks of a table are noted."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.splits import SplitUnit, assign_random_splits, splits_from_table
from protgraph.errors import DatasetError

FRACTIONS = {"train": 0.6, "val": 0.2, "test": 0.2}


def random_units(n: int, seed: int) -> list[SplitUnit]:
    """Return proteins of one to three chains with few distinct sequences, some in clusters."""
    rng = np.random.default_rng(seed)
    proteins = []
    for i in range(n):
        sequences = frozenset(f"s{k}" for k in rng.integers(0, 3 * n, rng.integers(1, 4)))
        clusters = frozenset(f"c{k}" for k in rng.integers(0, n, rng.integers(0, 2)))
        proteins.append(SplitUnit(f"p{i:03}", sequences, clusters))
    return proteins


@pytest.mark.parametrize("seed", range(5))
def test_no_sequence_and_no_cluster_is_in_two_splits(seed):
    proteins = random_units(40, seed)
    assignment = assign_random_splits(proteins, fractions=FRACTIONS, seed=seed)
    for attribute in ("sequences", "clusters"):
        splits_of: dict[str, set[str]] = {}
        for protein, split in zip(proteins, assignment.splits, strict=True):
            for name in getattr(protein, attribute):
                splits_of.setdefault(name, set()).add(split)
        assert all(len(splits) == 1 for splits in splits_of.values())
    assert set(assignment.splits) == set(FRACTIONS)


def test_order_of_proteins_does_not_matter():
    proteins = random_units(30, 0)
    order = np.random.default_rng(1).permutation(30)
    splits = assign_random_splits(proteins, fractions=FRACTIONS, seed=3).splits
    other = assign_random_splits([proteins[i] for i in order], fractions=FRACTIONS, seed=3).splits
    assert [splits[i] for i in order] == list(other)


def test_split_depends_on_the_seed():
    proteins = [SplitUnit(f"p{i}") for i in range(30)]
    splits = {assign_random_splits(proteins, fractions=FRACTIONS, seed=seed).splits for seed in (0, 1, 0, 1)}
    assert len(splits) == 2


def test_shared_sequences_are_counted():
    proteins = [
        SplitUnit("a", frozenset("x")),
        SplitUnit("b", frozenset("xy")),
        SplitUnit("c", frozenset("y")),
        SplitUnit("d"),
    ]
    assignment = assign_random_splits(
        [*proteins, SplitUnit("e", frozenset("z"))], fractions={"train": 0.5, "test": 0.5}, seed=0
    )
    (note,) = assignment.notes
    assert note.startswith("3 of 5 proteins")
    assert len(set(assignment.splits[:3])) == 1
    assert assign_random_splits(proteins[2:], fractions={"train": 1.0}, seed=0).notes == ()


def test_unreadable_proteins_are_assigned_to_train():
    broken = [SplitUnit(f"b{i}", is_readable=False) for i in range(20)]
    good = [SplitUnit(name, frozenset(name)) for name in "xyz"]
    for seed in range(10):
        splits = assign_random_splits(
            [*broken, *good], fractions={"train": 0.8, "val": 0.1, "test": 0.1}, seed=seed
        ).splits
        assert set(splits[:20]) == {"train"}
        assert sorted(splits[20:]) == ["test", "train", "val"]


def test_empty_splits_are_noted():
    same = [SplitUnit(name, frozenset("x")) for name in "abcdef"]
    assignment = assign_random_splits(same, fractions=FRACTIONS, seed=0)
    assert set(assignment.splits) == {"train"}
    (note,) = assignment.notes[1:]
    assert "val and test" in note
    assert len(assign_random_splits([*same, SplitUnit("g"), SplitUnit("h")], fractions=FRACTIONS, seed=0).notes) == 1


def test_splits_of_a_table_are_kept_and_shared_sequences_noted():
    proteins = [SplitUnit("a", frozenset("x")), SplitUnit("b", frozenset("xy")), SplitUnit("c", frozenset("z"))]
    assignment = splits_from_table(["train", "test", "val"], proteins, "t.csv")
    assert assignment.splits == ("train", "test", "val")
    assert "t.csv" in assignment.rule
    (note,) = assignment.notes
    assert note.startswith("1 sequence") and "(test, train)" in note and "t.csv" in note
    assert splits_from_table(["train", "train", "val"], proteins, "t.csv").notes == ()


def test_table_without_train_raises():
    with pytest.raises(DatasetError, match=r"t.csv: .*'train'.*\['a', 'b'\]"):
        splits_from_table(["b", "a"], [SplitUnit("x"), SplitUnit("y")], "t.csv")
