"""Auxiliary tasks: the sum of losses, shared layers, proteins without labels, resumption, and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protgraph.checkpoint import load_checkpoint
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.labels import ProteinLabels
from protgraph.errors import OptionError, UnknownNameError
from protgraph.labels.loading import load_dataset
from protgraph.train import fit
from protgraph.train.run_setup import set_up_run
from tests.train.conftest import Small


def setup_of(dataset, model, config, task="helix"):
    return set_up_run(model, load_dataset(dataset, task=task), task, config, cache=None, jobs=1)


def test_the_loss_is_the_weighted_sum_over_tasks(small, tiny, quick):
    config = replace(quick, auxiliary={"buried": 0.25, "size": 2.0})
    setup = setup_of(small, tiny, config)
    module = setup.module().eval()
    module.on_train_epoch_start = None
    module._generator = torch.Generator()
    module._trainer = type("Trainer", (), {"world_size": 1, "global_step": 0})()
    module._loss, module._count, module._nodes = torch.zeros(()), torch.zeros(()), 0
    batch = setup.prepared.splits["train"].collate([0, 3])
    names = [setup.prepared.splits["train"].names[i] for i in (0, 3)]
    others = [one.collate(names) for one in setup.auxiliary]

    expected = setup.task.loss(setup.network(batch)["logits"], batch.y)
    for one, other in zip(setup.auxiliary, others, strict=True):
        assert list(other.name) == names
        expected = expected + config.auxiliary[one.task.name] * one.loss(one.model(other)["logits"], other.y)
    assert torch.allclose(module.training_step((batch, *others), 0), expected)


def test_layers_are_shared_and_each_head_learns(small, tiny, quick, tmp_path):
    config = replace(quick, epochs=1, auxiliary={"buried": 1.0})
    setup = setup_of(small, tiny, config)
    other = setup.auxiliary[0].model
    assert other.layers is setup.network.layers
    assert other.head is not setup.network.head
    number = sum(p.numel() for p in setup.network.parameters()) + sum(p.numel() for p in other.head.parameters())
    assert sum(p.numel() for p in setup.module().parameters()) == number

    result = fit(tiny, small, "helix", config=config, save=tmp_path / "model.safetensors")
    assert 0 <= result.history[0]["buried.auprc"] <= 1
    alone = fit(tiny, small, "helix", config=replace(config, auxiliary={}))
    first = result.model.layers[0].state_dict()
    assert any(not torch.equal(first[key], value) for key, value in alone.model.layers[0].state_dict().items())
    assert "buried.auprc" not in alone.history[0]
    saved = load_checkpoint(tmp_path / "model.safetensors")
    assert saved.model.target.name == "helix"
    assert set(saved.model.state_dict()) == set(alone.model.state_dict())


def test_proteins_without_labels_of_a_task_are_left_out_of_it(structures_dir, tiny, quick):
    class Partly(Small):
        """Sizes of three chains only."""

        def examples(self, task, split=None):
            chosen = super().examples(task, split)
            return [e for e in chosen if task != "size" or e.id[:4] in ("1crn", "2erl", "1a8o")]

        def labels(self, task, example):
            return ProteinLabels(1.0) if task == "size" else super().labels(task, example)

    setup = setup_of(Partly(structures_dir), tiny, replace(quick, auxiliary={"size": 1.0}))
    (size,) = setup.auxiliary
    assert list(size.collate(["1ubq_A", "1crn_A"]).name) == ["1crn_A"]
    assert size.collate(["1ubq_A"]) is None
    assert "size: 2 training proteins, weight 1" in setup.prepared.notes
    config = replace(quick, batch_residues=64, auxiliary={"size": 1.0})  # most batches have no protein of it
    assert len(fit(tiny, Partly(structures_dir), "helix", config=config).history) == 3


def test_a_resumed_run_has_the_weights_of_an_undisturbed_one(small, tiny, quick, tmp_path):
    config = replace(quick, auxiliary={"masked_residue_type": 0.5, "buried": 1.0})
    whole = fit(tiny, small, "helix", config=config)

    def stop(row):
        if row["epoch"] == 1:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fit(tiny, small, "helix", config=config, run_dir=tmp_path / "run", on_epoch=stop)
    resumed = fit(tiny, small, "helix", config=config, run_dir=tmp_path / "run", resume=True)
    for key, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[key], value), key
    assert resumed.history == whole.history


def test_proteins_that_a_task_cannot_use_are_reported_once(structures_dir, tiny, quick):
    class Damaged(Small):
        """One protein has no file."""

        def examples(self, task, split=None):
            missing = Example("0xxx_A", structures_dir / "0xxx.bcif", ("A",), "train")
            return [*super().examples(task, split), *([missing] if split in (None, "train") else [])]

    setup = setup_of(Damaged(structures_dir), tiny, replace(quick, auxiliary={"size": 1.0}))
    assert [failure.protein for failure in setup.auxiliary[0].failures] == ["0xxx_A"]
    assert [failure.protein for failure in setup.prepared.failures] == ["0xxx_A"]


@pytest.mark.parametrize(
    ("auxiliary", "error", "message"),
    [({"helix": 1.0}, OptionError, "main task"),
     ({"helics": 1.0}, UnknownNameError, "helics"),
     ({"next_residue": 1.0}, OptionError, "causal"),
     ({"buried": 0.0}, OptionError, "greater than 0")],
)  # fmt: skip
def test_unusable_tasks_are_refused(small, tiny, quick, auxiliary, error, message):
    with pytest.raises(error, match=message):
        fit(tiny, small, "helix", config=replace(quick, auxiliary=auxiliary))
