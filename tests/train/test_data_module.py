"""Batches of several processes make up the global batches, and an epoch can start at any batch."""

from __future__ import annotations

import pytest
import torch

from protgraph.train import FitConfig, prepare
from protgraph.train.data_module import FitData, RankBatches, StoreLoader

BATCHES = [[0, 1, 2, 3, 4], [5], [6, 7], [8, 9, 10]]


@pytest.fixture
def stores(trained, small):
    return prepare(small, trained.task, trained.model.plan).splits


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_shares_of_all_processes_make_up_each_batch(world_size):
    ranks = [RankBatches.split(BATCHES, rank, world_size) for rank in range(world_size)]
    for number, members in enumerate(BATCHES):
        shares = [list(rank)[number] for rank in ranks if number not in rank.padding]
        assert sorted(i for share in shares for i in share) == members
    assert len({len(rank) for rank in ranks}) == 1


def test_the_share_of_a_single_process_is_the_whole_batch():
    assert list(RankBatches.split(BATCHES, 0, 1)) == BATCHES


def test_a_process_without_a_share_has_padding():
    second = RankBatches.split(BATCHES, 1, 2)
    assert second.padding == {1}
    assert list(second)[1] == [5]


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_batches_are_dealt_once_in_equal_numbers(world_size):
    ranks = [RankBatches.deal(BATCHES, rank, world_size) for rank in range(world_size)]
    assert len({len(rank) for rank in ranks}) == 1
    dealt = [share for rank in ranks for number, share in enumerate(rank) if number not in rank.padding]
    assert sorted(dealt) == sorted(BATCHES)


def test_an_epoch_that_starts_at_a_batch_has_the_remaining_ones():
    batches = RankBatches.split(BATCHES, 0, 1)
    batches.start = 3
    assert list(batches) == BATCHES[3:]
    assert list(batches) == BATCHES


def test_training_batches_contain_each_protein_once(trained, stores):
    data = FitData(stores["train"], stores["val"], trained.task, FitConfig(batch_residues=200, seed=3))
    names = [name for batch in data.train_dataloader() for name in batch.name]
    assert sorted(names) == sorted(stores["train"].names)
    assert names != stores["train"].names


@pytest.mark.slow
def test_workers_collate_the_same_batches_without_the_default_generator(trained, stores):
    config = FitConfig(batch_residues=200)
    here, there = (FitData(stores["train"], stores["val"], trained.task, config, workers=n) for n in (0, 2))
    state = torch.get_rng_state()
    for expected, batch in zip(here.train_dataloader(), there.train_dataloader(), strict=True):
        assert batch.name == expected.name and torch.equal(batch.pos, expected.pos)
    for expected, batch in zip(here.val_dataloader(), there.val_dataloader(), strict=True):
        assert batch.name == expected.name
    assert torch.equal(state, torch.get_rng_state())


def test_padding_is_marked():
    class Graph(dict):
        __setattr__ = dict.__setitem__

    loader = StoreLoader(lambda members: Graph(members=members), RankBatches.split(BATCHES, 1, 2))
    assert [graph.get("is_padding", False) for graph in loader] == [False, True, False, False]
