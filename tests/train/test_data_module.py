"""Batches of several processes make up the global batches, and an epoch can start at any batch."""

from __future__ import annotations

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from protgraph.data.store.loader import RankBatches, StoreLoader
from protgraph.evaluation.evaluation import collate_evaluation, evaluation_batches, predict_batch
from protgraph.labels import prepare
from protgraph.labels.loading import resolve_task
from protgraph.model import build_model
from protgraph.task.language_modeling import MASKED_LM
from protgraph.train import FitConfig, fit
from protgraph.train.data_module import FitData
from protgraph.train.module import FitModule

BATCHES = [[0, 1, 2, 3, 4], [5], [6, 7], [8, 9, 10]]


@pytest.fixture
def stores(trained, small):
    return prepare(small, trained.task, trained.model.plan).splits


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_shares_of_all_processes_make_up_each_batch(world_size):
    ranks = [RankBatches(BATCHES, rank, world_size) for rank in range(world_size)]
    for step, members in enumerate(BATCHES):
        shares = [rank.share(step) for rank in ranks]
        assert sorted(i for share, is_padding in shares if not is_padding for i in share) == members
    assert len({len(list(rank)) for rank in ranks} | {len(rank) for rank in ranks}) == 1


def test_the_share_of_a_single_process_is_the_whole_batch():
    assert list(RankBatches(BATCHES)) == BATCHES


def test_a_process_without_a_share_has_padding():
    second = RankBatches(BATCHES, 1, 2)
    assert [second.share(step)[1] for step in range(4)] == [False, True, False, False]
    assert list(second)[1] == [5]


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_batches_are_dealt_once_in_equal_numbers(world_size):
    ranks = [RankBatches(BATCHES, rank, world_size, deal=True) for rank in range(world_size)]
    assert len({len(list(rank)) for rank in ranks} | {len(rank) for rank in ranks}) == 1
    shares = [rank.share(step) for rank in ranks for step in range(len(rank))]
    assert sorted(share for share, is_padding in shares if not is_padding) == sorted(BATCHES)


def test_an_epoch_that_starts_at_a_batch_has_the_remaining_ones():
    batches = RankBatches(BATCHES)
    batches.start = 3
    assert list(batches) == BATCHES[3:]
    assert list(batches) == BATCHES


class Position:
    """The part of a Trainer that FitData reads."""

    def __init__(self, epoch: int, rank: int = 0, world_size: int = 1) -> None:
        self.current_epoch, self.global_rank, self.world_size = epoch, rank, world_size


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_batches_depend_on_seed_and_epoch_only(world_size, trained, stores):
    def batches(seed: int, epoch: int, world_size: int) -> list[set[str]]:
        config, steps = FitConfig(batch_residues=200, seed=seed), []
        for rank in range(world_size):
            data = FitData(stores["train"], stores["val"], trained.task, config)
            data.trainer = Position(max(0, epoch - 1), rank, world_size)
            names = [set(batch.name) for batch in data.train_dataloader()]
            data.trainer.current_epoch = epoch
            names = [set(batch.name) for batch in data.train_dataloader()]
            steps = names if not steps else [a | b for a, b in zip(steps, names, strict=True)]
        return steps

    orders = {(seed, epoch): batches(seed, epoch, world_size) for seed in (0, 1) for epoch in (0, 1, 2)}
    assert len({str(list(map(sorted, order))) for order in orders.values()}) == 6
    assert orders == {key: batches(*key, 1) for key in orders}


def test_the_number_of_steps_is_the_sum_over_epochs(trained, stores):
    data = FitData(stores["train"], stores["val"], trained.task, FitConfig(batch_residues=256))
    counts = []
    for epoch in range(12):
        data.trainer = Position(epoch)
        counts.append(len(list(data.train_dataloader())))
    assert data.steps(12) == sum(counts)
    assert len(set(counts)) > 1  # batches differ in number


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

    loader = StoreLoader(lambda members: Graph(members=members), RankBatches(BATCHES, 1, 2))
    assert [graph.get("is_padding", False) for graph in loader] == [False, True, False, False]


def test_a_pass_begins_at_the_batch_that_is_set():
    loader = StoreLoader(list, RankBatches(BATCHES))
    assert list(loader) == BATCHES
    loader.rank_batches.start = 2
    assert list(loader) == BATCHES[2:]
    assert list(loader) == BATCHES


def test_epochs_of_validation_batches_are_equal(trained, stores):
    data = FitData(stores["train"], stores["val"], trained.task, FitConfig(device="cpu"))
    first, second = (list(data.val_dataloader()) for _ in range(2))
    whole = list(
        FitData(stores["train"], stores["val"], trained.task, FitConfig(device="cpu"), workers=1).val_dataloader()
    )
    for ours in (first, second):
        assert [batch.name for batch in ours] == [batch.name for batch in whole]
        assert all(torch.equal(a.pos, b.pos) for a, b in zip(ours, whole, strict=True))


def test_training_batches_have_the_fields_that_the_model_reads(trained, stores):
    config = FitConfig(batch_residues=256, device="cpu")
    fields = FitModule(trained.model, trained.task, config).batch_fields
    whole, narrow = (
        FitData(stores["train"], stores["val"], trained.task, config, fields=own) for own in (None, fields)
    )
    left_out = {"backbone", "backbone_mask", "report", "residue_ids"}
    for full, batch in zip(whole.train_dataloader(), narrow.train_dataloader(), strict=True):
        assert left_out <= set(full.keys()) and not left_out & set(batch.keys())
        assert torch.equal(trained.model(full)["logits"], trained.model(batch)["logits"])
        assert torch.equal(full.y, batch.y) and full.name == batch.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["helix", "buried", "size"])
def test_validation_batches_have_the_fields_that_predictions_read(name, small):
    task = resolve_task(name, small)
    model = build_model("gcn", task.target, seed=0)
    store = prepare(small, task, model.plan).splits["val"]
    fields = FitModule(model, task, FitConfig(device="cpu")).batch_fields
    members = evaluation_batches(store, task)[0][:2]
    full, narrow = (collate_evaluation(store, members, task, fields=own) for own in (None, fields))
    assert {"residue_ids", "report"} <= set(full.keys()) and not {"residue_ids", "report"} & set(narrow.keys())
    first, second = (predict_batch(model.eval(), batch, task) for batch in (full, narrow))
    assert torch.equal(first.rows.logits, second.rows.logits) and torch.equal(first.rows.y, second.rows.y)
    assert first.loss == second.loss


def test_batches_are_complete_for_noise_and_for_tasks_that_corrupt_inputs(trained):
    assert FitModule(trained.model, trained.task, FitConfig(device="cpu")).batch_fields is not None
    assert FitModule(trained.model, trained.task, FitConfig(device="cpu", noise=0.1)).batch_fields is None
    assert FitModule(trained.model, MASKED_LM, FitConfig(device="cpu")).batch_fields is None


class KeepBatches(Callback):
    """Receive every training batch."""

    def __init__(self):
        self.keys = set()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.keys |= set(batch.keys())


class KeepValidationBatches(Callback):
    """Receive every validation batch."""

    def __init__(self):
        self.keys = set()

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        self.keys |= set(batch.keys())


@pytest.mark.parametrize("kind", [KeepBatches, KeepValidationBatches])
def test_a_callback_receives_complete_batches_and_the_same_losses_to_the_bit(tiny, small, quick, kind):
    callback = kind()
    first, second = (fit(tiny, small, "helix", config=quick, callbacks=own) for own in ([], [callback]))
    assert {"backbone", "report", "residue_ids"} <= callback.keys
    assert first.history == second.history
    states = first.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
