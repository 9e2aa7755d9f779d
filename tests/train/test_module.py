"""FitModule and FitData with a user's Lightning Trainer."""

from __future__ import annotations

import lightning.pytorch as pl
import pytest
import torch

from protgraph.labels import prepare
from protgraph.model import build_model
from protgraph.train import fit
from protgraph.train.data_module import FitData
from protgraph.train.module import FitModule
from protgraph.train.run_setup import count_labels, initialize_head, standardize_inputs
from protgraph.train.session import random_state, set_random_state


def test_a_trainer_of_the_user_gives_the_weights_of_fit(small, tiny, quick, trained, tmp_path):
    task = trained.task
    model = build_model(tiny, task.target, seed=quick.seed)
    splits = prepare(small, task, model.plan).splits
    standardize_inputs(model, task, splits["train"])
    initialize_head(model.head, task, count_labels(task, splits["train"], seed=quick.seed))
    module, data = FitModule(model, task, quick), FitData(splits["train"], splits["val"], task, quick)
    best = pl.callbacks.ModelCheckpoint(tmp_path, monitor=task.monitor, mode=task.mode)
    trainer = pl.Trainer(
        max_epochs=quick.epochs,
        gradient_clip_val=quick.gradient_clip,
        accelerator="cpu",
        callbacks=[best],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(quick.seed)
        trainer.fit(module, datamodule=data)
    assert tuple(module.history) == trained.history
    weights = torch.load(best.best_model_path, weights_only=True)["state_dict"]
    expected = trained.model.state_dict()
    assert all(torch.equal(weights[f"model.{name}"], expected[name]) for name in expected)


def test_a_sanity_check_adds_no_row(small, tiny, quick, trained, tmp_path):
    model = build_model(tiny, trained.task.target)
    splits = prepare(small, trained.task, model.plan).splits
    module = FitModule(model, trained.task, quick)
    trainer = pl.Trainer(
        max_epochs=1,
        num_sanity_val_steps=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, datamodule=FitData(splits["train"], splits["val"], trained.task, quick))
    assert [row["epoch"] for row in module.history] == [1]


def test_callbacks_and_workers_are_passed_on(small, tiny, quick, trained):
    batches = []
    count = pl.callbacks.LambdaCallback(on_train_batch_end=lambda *_: batches.append(1))
    result = fit(tiny, small, "helix", config=quick, callbacks=[count], workers=1)
    assert len(batches) % quick.epochs == 0 < len(batches)
    assert result.history == trained.history


def test_random_streams_are_restored():
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():
        state = random_state(generator)

        def draw():
            return torch.rand(1).item(), torch.rand(1, generator=generator).item()

        expected = draw()
        set_random_state(state, generator)
        assert draw() == expected


@pytest.mark.parametrize("precision", ["float16", "64"])
def test_precision_of_fit_is_checked(precision, small, tiny, quick):
    from protgraph.errors import OptionError

    with pytest.raises(OptionError, match=precision):
        fit(tiny, small, "helix", config=quick, precision=precision)
