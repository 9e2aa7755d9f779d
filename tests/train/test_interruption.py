"""Ctrl-C and SIGTERM keep the best epoch in the exception, and the state from which the run is resumed."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
import torch

from protgraph.checkpoint import load_checkpoint
from protgraph.evaluation import evaluate
from protgraph.labels import prepare
from protgraph.train import TrainingInterrupted, fit


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def at(epoch, action):
    """Return a function for ``on_epoch`` that acts once."""

    def stop(row):
        if row["epoch"] == epoch:
            action()

    return stop


def interrupt():
    raise KeyboardInterrupt


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("action", "number"),
    [(interrupt, signal.SIGINT), (lambda: os.kill(os.getpid(), signal.SIGINT), signal.SIGINT),
     (terminate, signal.SIGTERM)],
    ids=["raised", "SIGINT", "SIGTERM"],
)  # fmt: skip
def test_the_best_epoch_so_far_is_the_result(small, tiny, quick, trained, tmp_path, action, number):
    before = handlers()
    with pytest.raises(TrainingInterrupted) as caught:
        fit(tiny, small, "helix", config=quick, run_dir=tmp_path / "run", on_epoch=at(2, action))
    assert caught.value.signal is number and handlers() == before
    result, monitor = caught.value.result, trained.task.monitor
    best = max(trained.history[:2], key=lambda row: row[monitor])
    assert result.interrupted == number.name and result.best_epoch == best["epoch"]
    assert result.history[:2] == trained.history[:2] and list(result.metrics) == ["val"]
    val = prepare(small, result.task, result.model.plan).splits["val"]
    assert evaluate(result.model, val, result.task, threshold=result.threshold)[monitor] == best[monitor]
    path = result.save(tmp_path / "m.safetensors")
    assert load_checkpoint(path).trained["interrupted"] == number.name
    assert "interrupted" not in trained.checkpoint().trained
    resumed = fit(tiny, small, "helix", config=quick, run_dir=tmp_path / "run", resume=True)
    assert resumed.history == trained.history and resumed.metrics == trained.metrics and not resumed.interrupted
    expected, weights = trained.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(expected[name], weights[name]) for name in expected)


def test_without_a_run_folder_the_result_is_kept_too(small, tiny, quick, trained):
    with pytest.raises(TrainingInterrupted) as caught:
        fit(tiny, small, "helix", config=quick, on_epoch=at(1, interrupt))
    assert caught.value.result.epochs == 1 and caught.value.result.best_epoch == 1


def test_before_the_first_validated_epoch_there_is_no_result(small, tiny, quick, monkeypatch, tmp_path):
    from lightning.pytorch.callbacks import LambdaCallback

    stop = LambdaCallback(on_train_batch_end=lambda *_: interrupt())
    with pytest.raises(TrainingInterrupted) as caught:
        fit(tiny, small, "helix", config=quick, callbacks=[stop], run_dir=tmp_path)
    assert caught.value.result is None and caught.value.signal is signal.SIGINT
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted) as caught:
        patch.setattr(type(small), "examples", lambda *_: interrupt())  # while data are prepared
        fit(tiny, small, "helix", config=quick)
    assert caught.value.result is None


def test_an_interrupted_test_keeps_the_best_epoch(small, tiny, quick, trained, monkeypatch, tmp_path):
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted) as caught:
        patch.setattr(sys.modules["protgraph.train.training"], "predict_split", lambda *_: interrupt())
        fit(tiny, small, "helix", config=quick, run_dir=tmp_path)
    assert caught.value.result.history == trained.history and caught.value.result.test == {}
    resumed = fit(tiny, small, "helix", config=quick, run_dir=tmp_path, resume=True)
    assert resumed.metrics == trained.metrics and resumed.history == trained.history


def test_a_handler_of_the_caller_is_kept(small, tiny, quick):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        result = fit(tiny, small, "helix", config=quick, on_epoch=at(1, terminate))
        assert received == [signal.SIGTERM] and signal.getsignal(signal.SIGTERM) is mine
        assert result.epochs == quick.epochs
    finally:
        signal.signal(signal.SIGTERM, before)


def test_training_in_a_thread_changes_no_handler(small, tiny, quick, trained):
    before, results = handlers(), []
    thread = threading.Thread(target=lambda: results.append(fit(tiny, small, "helix", config=quick)))
    thread.start()
    thread.join(120)
    assert results[0].history == trained.history and handlers() == before
