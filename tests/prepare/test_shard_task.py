"""Shards have bounded sizes, and their boundaries do not move when other records are added, removed or changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protgraph.errors import OptionError
from protgraph.prepare import InputRecord, split_shards

SIZES = st.lists(st.integers(1, 5000), max_size=300)


def records(sizes):
    return [InputRecord(f"folder/{n}.pdb", size) for n, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 4000))
def test_shards_hold_all_records_in_order_within_the_limit(sizes, target):
    given = records(sizes)
    tasks = list(split_shards(given, residues=target))
    assert [record for task in tasks for record in task.records] == given
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(task.residues <= 2 * target or len(task.records) == 1 for task in tasks)
    assert all(task.residues >= min(target / 2, 2 * target - max(sizes)) for task in tasks[:-1])


def names(given):
    return {task.name for task in split_shards(given, residues=3000)}


@pytest.mark.parametrize("place", [0, 500, 999])
def test_an_added_removed_or_resized_record_changes_the_shards_around_it_only(place):
    whole = records([300 + n % 7 for n in range(1000)])
    before = names(whole)
    added = [*whole[:place], InputRecord("new.pdb", 310), *whole[place:]]
    removed = [*whole[:place], *whole[place + 1 :]]
    resized = [*whole[:place], InputRecord(whole[place].label, 900), *whole[place + 1 :]]
    for changed in (added, removed, resized):
        assert len(names(changed) - before) <= 3 < len(before) / 20
    assert names(records([300 + n % 7 for n in range(1000)])) == before


def test_the_folder_of_the_files_does_not_move_boundaries():
    one, two = ([InputRecord(f"{folder}/{n}.pdb", 300) for n in range(1000)] for folder in ("a", "other/b"))
    assert [len(t.records) for t in split_shards(one)] == [len(t.records) for t in split_shards(two)]


def test_records_are_read_as_shards_are_taken():
    taken = []
    tasks = split_shards((taken.append(n) or InputRecord(str(n), 100) for n in range(10_000)), residues=1000)
    next(tasks)
    assert len(taken) <= 20


def test_a_size_below_one_raises():
    with pytest.raises(OptionError, match="residues = 0"):
        list(split_shards([], residues=0))
