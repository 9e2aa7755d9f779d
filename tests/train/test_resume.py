"""Resumed runs end with the weights of an uninterrupted run, bit for bit; damaged states are errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import LambdaCallback
from safetensors.torch import load_file

from protgraph.errors import CheckpointError, OptionError
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.train import fit
from protgraph.train.run_folder import STATE_FORMAT, RunFolder, StateFileIO
from tests.train.runs import run

ROOT = Path(__file__).parents[2]
IDENTITY = {"config": {"epochs": 3, "patience": None}}


def start(structures_dir, out, options) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.train.runs", str(structures_dir), json.dumps([(str(out), options)])]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})


@contextmanager
def one_thread():
    """Use one thread, as the processes that :func:`start` starts; not in other tests, whose bits depend on it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


LONG = {"config": {"epochs": 6}, "dropout": 0.2}


@pytest.fixture(scope="module")
def whole(structures_dir, tmp_path_factory) -> Path:
    """Weights of a run that is not interrupted."""
    out = tmp_path_factory.mktemp("whole") / "m.safetensors"
    with one_thread():
        run(out, structures_dir, LONG)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("interval", [600.0, 0.0], ids=["state at the end of an epoch", "state within an epoch"])
def test_a_killed_run_is_resumed_to_the_same_bits(interval, whole, structures_dir, tmp_path):
    options = LONG | {"state_interval": interval, "run_dir": str(tmp_path / "run")}
    killed = start(structures_dir, tmp_path / "m.safetensors", options | {"pause": 0.3})
    while not (tmp_path / "epochs.txt").exists() or len((tmp_path / "epochs.txt").read_text().split()) < 2:
        assert killed.poll() is None
        time.sleep(0.05)
    time.sleep(0.8)  # some batches into the third epoch
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(60) == -signal.SIGKILL
    assert (tmp_path / "run" / "checkpoints" / "state.ckpt").is_file()
    assert not (tmp_path / "m.safetensors").exists()
    with one_thread():
        run(tmp_path / "m.safetensors", structures_dir, options | {"resume": True})
    expected, weights = load_file(whole), load_file(tmp_path / "m.safetensors")
    assert expected.keys() == weights.keys()
    assert all(torch.equal(expected[name], weights[name]) for name in expected)
    assert (tmp_path / "m.json").read_bytes() == whole.with_suffix(".json").read_bytes()
    assert len((tmp_path / "epochs.txt").read_text().split()) < 12  # epochs were not repeated


def interrupt(small, tiny, config, folder):
    """Interrupt a run after two epochs."""

    def stop(row):
        if row["epoch"] == 2:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fit(tiny, small, "helix", config=config, run_dir=folder, on_epoch=stop)


def test_a_run_is_resumed_after_an_error(small, tiny, quick, trained, tmp_path):
    interrupt(small, tiny, quick, tmp_path / "run")
    rows = []
    result = fit(tiny, small, "helix", config=quick, run_dir=tmp_path / "run", resume=True, on_epoch=rows.append)
    assert result.history == trained.history
    expected, weights = trained.model.state_dict(), result.model.state_dict()
    assert all(torch.equal(expected[name], weights[name]) for name in expected)
    assert [row["epoch"] for row in rows] == [2, 3]


def test_the_state_holds_plain_data_and_tensors_only(small, tiny, quick, tmp_path):
    interrupt(small, tiny, quick, tmp_path)
    state = torch.load(tmp_path / "checkpoints" / "state.ckpt", weights_only=True)
    assert {"loops", "optimizer_states", "lr_schedulers", "callbacks", "protgraph", "FitData"} <= state.keys()
    assert {"torch", "cuda", "generator"} == state["protgraph"]["random"][0].keys()


def test_resuming_with_other_options_is_an_error(small, tiny, quick, tmp_path):
    interrupt(small, tiny, quick, tmp_path)
    with pytest.raises(CheckpointError, match="config.lr = 0.005, not 0.001"):
        fit(tiny, small, "helix", config=replace(quick, lr=1e-3), run_dir=tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="task"):
        fit(tiny, small, "buried", config=quick, run_dir=tmp_path, resume=True)


def test_a_run_without_a_state_starts_from_the_beginning(small, tiny, quick, trained, tmp_path):
    result = fit(tiny, small, "helix", config=quick, run_dir=tmp_path / "run", resume=True)
    assert result.history == trained.history


def test_a_new_run_replaces_the_state_of_an_interrupted_one(small, tiny, quick, trained, tmp_path):
    interrupt(small, tiny, replace(quick, seed=3), tmp_path)
    assert fit(tiny, small, "helix", config=quick, run_dir=tmp_path).history == trained.history


def test_a_moved_folder_is_resumed_with_the_best_epoch_so_far(small, tiny, quick, tmp_path):
    config = replace(quick, standardize=False)
    whole = fit(tiny, small, "helix", config=config)
    interrupt(small, tiny, config, tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    result = fit(tiny, small, "helix", config=config, run_dir=tmp_path / "after", resume=True)
    assert result.best_epoch == whole.best_epoch == 1  # an epoch before the interruption


def cut(path):
    path.write_bytes(path.read_bytes()[:2000])


def flip_a_bit(path):
    """Change a bit of the largest tensor; between the tensors of a file there is padding."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(max(archive.infolist(), key=lambda info: info.file_size))
    content = bytearray(path.read_bytes())
    content[content.index(data) + len(data) // 2] ^= 1
    path.write_bytes(content)


def edited(change):
    def edit(path):
        state = torch.load(path, weights_only=True)
        change(state)
        torch.save(state, path)

    return edit


DAMAGES = {
    "state cut": ("state.ckpt", cut),
    "state empty": ("state.ckpt", lambda path: path.write_bytes(b"")),
    "state with another bit": ("state.ckpt", flip_a_bit),
    "state of another program": ("state.ckpt", edited(lambda s: s.pop("protgraph"))),
    "state of other weights": ("state.ckpt", edited(lambda s: s["state_dict"].popitem())),
    "state with objects": ("state.ckpt", edited(lambda s: s.update(object=Path()))),
    "best epoch missing": ("best.ckpt", Path.unlink),
    "best epoch cut": ("best.ckpt", cut),
    "record missing": ("run.json", Path.unlink),
    "record cut": ("run.json", lambda path: path.write_text("{")),
    "record of another form": ("run.json", lambda path: path.write_text("[]")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_an_error(damage, small, tiny, quick, tmp_path):
    interrupt(small, tiny, quick, tmp_path)
    name, change = DAMAGES[damage]
    change(tmp_path / "checkpoints" / name)
    with pytest.raises(CheckpointError):
        fit(tiny, small, "helix", config=quick, run_dir=tmp_path, resume=True)
    assert fit(tiny, small, "helix", config=quick, run_dir=tmp_path).epochs == quick.epochs


def record_without_an_option(path):
    record = json.loads(path.read_text())
    del record["config"]["noise"]
    path.write_text(json.dumps(record))


def test_a_state_of_other_options_is_refused_with_what_to_do(small, tiny, quick, tmp_path):
    interrupt(small, tiny, quick, tmp_path)
    record_without_an_option(tmp_path / "checkpoints" / "run.json")
    with pytest.raises(CheckpointError, match=r"no config.noise.* start again"):
        fit(tiny, small, "helix", config=quick, run_dir=tmp_path, resume=True)


def test_the_content_of_a_state_is_that_of_its_format(small, tiny, quick, tmp_path):
    """Raise STATE_FORMAT when this content changes: states of earlier versions must be refused by name."""
    interrupt(small, tiny, quick, tmp_path)
    state = torch.load(tmp_path / "checkpoints" / "state.ckpt", weights_only=True)
    own = "random history thresholds residues nodes seconds loss count"
    assert STATE_FORMAT == 3 and set(state["protgraph"]) == set(own.split())
    assert set(state["FitData"]) == {"epoch", "batch"}
    kinds = [key.partition("{")[0] for key in state["callbacks"]]
    assert sorted(kinds) == ["FitEarlyStopping", "FitEarlyStopping", "RunCheckpoint"]


def test_an_interrupted_write_keeps_the_earlier_state(tmp_path, monkeypatch):
    def half(checkpoint, file):
        file.write(b"half")
        raise KeyboardInterrupt

    path = tmp_path / "state.ckpt"
    StateFileIO().save_checkpoint({"epoch": 1}, path)
    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        StateFileIO().save_checkpoint({"epoch": 2}, path)
    assert torch.load(path, weights_only=True) == {"epoch": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_removes_its_own_files_only(small, tiny, quick, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (checkpoints / "mine.ckpt").write_text("mine")
    (checkpoints / ".state.ckpt.0123.part").write_text("of a killed process")
    with RunFolder(tmp_path) as folder:
        folder.start(IDENTITY, resume=False)
        (checkpoints / "best.ckpt").write_text("of a run without a state")
    assert [path.name for path in checkpoints.iterdir()] == ["mine.ckpt"]


def test_a_finished_run_keeps_its_state_of_three_times_the_weights(small, quick, tmp_path):
    spec = component("embed", reads=["aatype"], dim=20_000)
    result = fit(ModelSpec("wide", layers=[spec]), small, "helix", config=quick, run_dir=tmp_path)
    weights = 4 * sum(p.numel() for p in result.model.parameters())
    sizes = {path.name: path.stat().st_size / weights for path in (tmp_path / "checkpoints").iterdir()}
    assert sizes["state.ckpt"] == pytest.approx(3, rel=0.05) and sizes["best.ckpt"] == pytest.approx(1, rel=0.05)


#: No learning rate of it depends on the number of epochs: 16 steps are warmed up in one.
CONSTANT = {"schedule": "constant", "batch_residues": 512}


def longer(folder, small, spec, config, **options):
    """Resume a run; return the result and the epochs that were trained."""
    rows = []
    result = fit(spec, small, "helix", config=config, run_dir=folder, resume=True, on_epoch=rows.append, **options)
    return result, [row["epoch"] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["finished", "interrupted"])
def test_a_longer_run_equals_one_that_had_all_epochs_from_the_start(end, small, tiny, quick, tmp_path):
    short, config = replace(quick, **CONSTANT), replace(quick, **CONSTANT, epochs=6)
    whole = fit(tiny, small, "helix", config=config, run_dir=tmp_path / "whole")
    if end == "finished":
        assert fit(tiny, small, "helix", config=short, run_dir=tmp_path / "run").history == whole.history[:3]
    else:
        interrupt(small, tiny, short, tmp_path / "run")
    result, epochs = longer(tmp_path / "run", small, tiny, config)
    assert epochs == ([4, 5, 6] if end == "finished" else [2, 3, 4, 5, 6])
    assert result.history == whole.history and result.metrics == whole.metrics and result.config == config
    assert "resumed with 6 epochs in place of 3" in result.notes
    states = [
        torch.load(tmp_path / name / "checkpoints" / "state.ckpt", weights_only=True) for name in ("run", "whole")
    ]
    for key in ("state_dict", "optimizer_states"):
        torch.testing.assert_close(states[0][key], states[1][key], rtol=0, atol=0)


@pytest.mark.slow
def test_the_learning_rate_of_a_longer_run_is_that_of_all_epochs(small, tiny, quick, tmp_path):
    rates = []
    record = LambdaCallback(
        on_train_batch_start=lambda trainer, *_: rates.append(trainer.optimizers[0].param_groups[0]["lr"])
    )
    config = replace(quick, epochs=6)
    fit(tiny, small, "helix", config=quick, run_dir=tmp_path)
    result, epochs = longer(tmp_path, small, tiny, config, callbacks=[record])
    resumed, rates[:] = rates.copy(), []
    fit(tiny, small, "helix", config=config, callbacks=[record])
    assert epochs == [4, 5, 6] and resumed == rates[-len(resumed) :] and resumed[0] > 0.4 * config.lr
    assert any("learning rate is that of a run of 6 epochs" in note for note in result.notes)


def test_a_finished_run_without_more_epochs_gives_its_result_again(small, tiny, quick, trained, tmp_path):
    fit(tiny, small, "helix", config=quick, run_dir=tmp_path)
    result, epochs = longer(tmp_path, small, tiny, quick)
    assert epochs == [] and result.history == trained.history and result.metrics == trained.metrics
    assert "finished 3 epochs" in RunFolder(tmp_path).describe_end(quick)
    assert not RunFolder(tmp_path).describe_end(replace(quick, epochs=4))


@pytest.mark.slow
def test_a_run_that_stopped_early_needs_a_larger_patience(small, tiny, quick, tmp_path):
    still = replace(quick, lr=1e-12, epochs=9, patience=2)
    assert fit(tiny, small, "helix", config=still, run_dir=tmp_path).epochs == 3
    for config in (still, replace(still, epochs=20)):
        assert "patience is 2" in RunFolder(tmp_path).describe_end(config)
        result, epochs = longer(tmp_path, small, tiny, config)
        assert epochs == [] and (result.epochs, result.best_epoch) == (3, 1)
    patient = replace(still, epochs=20, patience=4)
    assert not RunFolder(tmp_path).describe_end(patient)
    result, epochs = longer(tmp_path, small, tiny, patient)
    assert epochs == [4, 5] and (result.epochs, result.best_epoch) == (5, 1)
    assert longer(tmp_path, small, tiny, replace(patient, epochs=21, patience=None))[1] == [*range(6, 22)]


def test_fewer_epochs_than_planned_are_an_error(small, tiny, quick, tmp_path):
    interrupt(small, tiny, quick, tmp_path)
    with pytest.raises(CheckpointError, match="epochs = 3, more than 2"):
        fit(tiny, small, "helix", config=replace(quick, epochs=2), run_dir=tmp_path, resume=True)


def test_a_run_that_a_time_limit_stopped_is_trained_on(small, tiny, quick, tmp_path):
    config = replace(quick, epochs=4, max_time=0.001)
    first = fit(tiny, small, "helix", config=config, run_dir=tmp_path)
    result, epochs = longer(tmp_path, small, tiny, replace(config, max_time=None))
    assert first.epochs < 4 and epochs == [*range(first.epochs + 1, 5)] and result.epochs == 4


@pytest.mark.slow
def test_two_runs_cannot_use_one_folder(small, tiny, quick, tmp_path, monkeypatch):
    monkeypatch.setattr("protgraph.train.run_folder._WAIT", 0.1)

    def another(row):
        with pytest.raises(OptionError, match=tmp_path.name):
            fit(tiny, small, "helix", config=quick, run_dir=tmp_path)

    assert fit(tiny, small, "helix", config=quick, run_dir=tmp_path, on_epoch=another).epochs == quick.epochs


def test_a_run_folder_that_cannot_be_written_is_an_error(small, tiny, quick, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="file"):
        fit(tiny, small, "helix", config=quick, run_dir=tmp_path / "file")


def test_resuming_needs_the_folder_of_the_run(small, tiny, quick):
    with pytest.raises(OptionError, match="run_dir"):
        fit(tiny, small, "helix", config=quick, resume=True)
