"""Callbacks and loggers of the user in fit, and errors for invalid options of the Trainer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, RichProgressBar

from protgraph.errors import OptionError, ProtgraphError
from protgraph.train import fit
from protgraph.train.trainer import TrainerOptions


@pytest.mark.parametrize(
    "options",
    [
        {"devices": 0},
        {"devices": "x"},
        {"strategy": "nowhere"},
        {"callbacks": [print]},
        {"callbacks": EarlyStopping("val_loss")},
        {"logger": True},
        {"logger": "csv"},
        {"workers": -1},
        {"state_interval": -5.0},
        {"max_time": 0},
        {"max_time": 1e15},
    ],
    ids=lambda options: " ".join(f"{key} {value if isinstance(value, (int, float, str)) else type(value).__name__}"
                                 for key, value in options.items()),
)  # fmt: skip
def test_invalid_options_are_errors(options, small, tiny, quick):
    with pytest.raises(OptionError, match=next(iter(options))):
        fit(tiny, small, "helix", config=quick, **options)


def test_callbacks_with_the_settings_of_fit_are_accepted(small, tiny, quick, tmp_path):
    own = [
        EarlyStopping("accuracy", mode="max", patience=1),
        EarlyStopping("train_loss"),
        ModelCheckpoint(tmp_path / "own", monitor="accuracy", mode="max"),
        RichProgressBar(),
    ]
    result = fit(tiny, small, "helix", config=replace(quick, lr=1e-12, epochs=9), callbacks=own, run_dir=tmp_path)
    assert (result.best_epoch, result.epochs) == (1, 2)  # the patience of the user's callback is shorter
    assert len(list((tmp_path / "own").iterdir())) == 1


class Stop(Callback):
    """Stop training in one hook."""

    def __init__(self, hook: str) -> None:
        setattr(self, hook, lambda trainer, *_: setattr(trainer, "should_stop", True))


@pytest.mark.parametrize("hook", ["on_train_batch_end", "on_validation_end", "on_train_epoch_end"])
def test_a_callback_can_stop_training(hook, small, tiny, quick):
    assert fit(tiny, small, "helix", config=quick, callbacks=[Stop(hook)]).epochs == 1


@pytest.mark.parametrize("hook", ["on_fit_start", "on_train_start", "on_train_epoch_start"])
def test_training_that_ends_before_the_first_validation_is_an_error(hook, small, tiny, quick):
    with pytest.raises(ProtgraphError, match="'tiny'"):
        fit(tiny, small, "helix", config=quick, callbacks=[Stop(hook)])


class ReadsBatches(Callback):
    def on_validation_batch_end(self, *arguments) -> None:
        """Receive a batch."""


class WithoutHooks(Callback):
    on_train_batch_start = on_train_batch_end = None  # Lightning skips hooks that are None


@pytest.mark.parametrize(("callback", "expected"), [(ReadsBatches, True), (WithoutHooks, False), (Callback, False)])
def test_batches_are_complete_only_for_callbacks_that_receive_them(callback, expected):
    options = {"devices": 1, "strategy": "auto", "logger": None, "workers": 0, "state_interval": 600.0}
    made = TrainerOptions(callbacks=[callback()], progress=False, on_epoch=None, **options)
    assert made.reads_batches is expected
