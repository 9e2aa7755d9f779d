"""The training state is written at intervals, at the end of epochs, and takes at most 1 % of the time of short ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from protgraph.train import callbacks
from protgraph.train.callbacks import StateCheckpoint


class Run:
    """A trainer, its module and a clock; writing a state takes ``writing`` seconds."""

    def __init__(self, monkeypatch, *, interval, writing, epochs=1000):
        self.now, self.writing, self.saved = 100.0, writing, []
        monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: self.now))
        progress = SimpleNamespace(is_last_batch=False)
        self.trainer = SimpleNamespace(
            strategy=SimpleNamespace(broadcast=lambda value: value),
            should_stop=False,
            current_epoch=0,
            max_epochs=epochs,
            save_checkpoint=self.save,
            fit_loop=SimpleNamespace(epoch_loop=SimpleNamespace(batch_progress=progress)),
        )
        self.progress, self.module = progress, SimpleNamespace(seconds=0.0)
        self.callback = StateCheckpoint("state.ckpt", interval)
        self.callback.on_train_start(self.trainer, self.module)

    def save(self, path):
        assert path == "state.ckpt"
        self.saved.append((self.trainer.current_epoch, self.progress.is_last_batch))
        self.now += self.writing

    def epoch(self, batches, seconds):
        """Train one epoch with steps of ``seconds``."""
        for batch in range(batches):
            self.now += seconds
            self.module.seconds += seconds
            self.progress.is_last_batch = batch == batches - 1
            self.callback.on_train_batch_end(self.trainer, self.module, None, None, batch)
        self.callback.on_train_epoch_end(self.trainer, self.module)
        self.trainer.current_epoch += 1


@pytest.mark.parametrize(("seconds", "every"), [(0.125, 3), (0.02, 15), (1.0, 1), (60.0, 1)])
def test_states_of_short_epochs_take_one_percent_of_the_time(monkeypatch, seconds, every):
    run = Run(monkeypatch, interval=600.0, writing=0.00299)
    for _ in range(30):
        run.epoch(1, seconds)
    written = [epoch for epoch, _ in run.saved]
    assert written[0] == 0 and written == [*range(0, 30, every)]
    assert every == 1 or len(written) * run.writing <= 0.01 * run.module.seconds + run.writing


@pytest.mark.parametrize("end", ["last epoch", "early stopping"])
def test_the_last_epoch_is_written(monkeypatch, end):
    run = Run(monkeypatch, interval=600.0, writing=1.0, epochs=3 if end == "last epoch" else 9)
    run.epoch(1, 0.1)
    run.epoch(1, 0.1)
    run.trainer.should_stop = end == "early stopping"
    run.epoch(1, 0.1)
    assert [epoch for epoch, _ in run.saved] == [0, 2]


def test_long_epochs_are_written_at_intervals_but_not_after_their_last_batch(monkeypatch):
    run = Run(monkeypatch, interval=10.0, writing=0.0)
    run.epoch(10, 2.0)
    assert run.saved == [(0, False), (0, True)]  # after 10 s; after 20 s only as that of the epoch
    run.epoch(3, 2.0)
    assert run.saved[2:] == [(1, True)]


def test_without_an_interval_each_batch_and_epoch_is_written(monkeypatch):
    run = Run(monkeypatch, interval=0.0, writing=1.0)
    for _ in range(3):
        run.epoch(2, 0.1)
    assert run.saved == [(epoch, is_last) for epoch in range(3) for is_last in (False, True)]
