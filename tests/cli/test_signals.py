"""SIGTERM and Ctrl-C: the best epoch of a training is kept, other commands end with a line and their exit code."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from protgraph.checkpoint import load_checkpoint
from protgraph.cli.signals import Terminated, raise_on_signals

CODE = """
import os, signal, time
from lightning.pytorch.callbacks import Callback, LambdaCallback

class Stop(Callback):
    def __init__(self, hook, number, epoch):
        self.number, self.epoch = number, epoch
        setattr(self, hook, self.act)

    def act(self, trainer, *_):
        if trainer.current_epoch == self.epoch and trainer.is_global_zero:
            os.kill(os.getpid(), self.number)

def term():
    return Stop("on_train_batch_start", signal.SIGTERM, 2)

def interrupt():
    return Stop("on_train_batch_start", signal.SIGINT, 2)

def at_once():
    return Stop("on_train_batch_start", signal.SIGTERM, 0)

def slow():
    return LambdaCallback(on_train_batch_end=lambda *_: time.sleep(0.1))
"""


@pytest.fixture
def here(tmp_path, monkeypatch, structures_dir):
    """Run in a folder with 12 structures and the module ``stopping``."""
    (tmp_path / "A").mkdir()
    for path in sorted(structures_dir.iterdir())[:12]:
        shutil.copyfile(path, tmp_path / "A" / path.name)
    (tmp_path / "stopping.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("stopping", None)


def train(*more):
    options = ("--task", "secondary_structure", "--epochs", 4, "-q", "--log", "none", "-o", "m.safetensors")
    return ("train", "gcn", "--data", "A", *options, *more)


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize(
    ("name", "code"), [("term", 143), pytest.param("interrupt", 130, marks=pytest.mark.slow)], ids=["SIGTERM", "SIGINT"]
)
def test_training_keeps_the_best_epoch_and_is_resumed(run, here, name, code):
    before = handlers()
    stopped = run(*train("--callback", f"stopping:{name}"))
    assert stopped.code == code and handlers() == before
    [line] = [line for line in stopped.err.splitlines() if "interrupted" in line]
    assert "m.safetensors" in line and "--resume" in line and "val accuracy" in line and "test" in line
    checkpoint = load_checkpoint("m.safetensors")
    assert checkpoint.trained["interrupted"] == {143: "SIGTERM", 130: "SIGINT"}[code]
    assert checkpoint.trained["epochs"] == 2 and list(checkpoint.metrics) == ["val"]
    assert run("predict", "m.safetensors", "A/1a19.bcif", "-o", "p.csv").code == 0
    assert run(*train()).code == 2  # an existing checkpoint needs --overwrite
    saved = (here / "m.safetensors").read_bytes()
    refused = [
        ("--resume", "--lr", 0.1),  # the state is of other arguments
        ("--resume", "--lr", 0.1, "--overwrite"),
        ("--overwrite", "--device", "abacus"),
        ("--overwrite", "--noise", 0.1, "--resume"),
    ]
    for more in refused:
        result = run(*train(*more))
        assert result.code == 2, result.err
    assert (here / "m.safetensors").read_bytes() == saved
    resumed = run(*train("--resume"))
    assert resumed.code == 0 and "test" in resumed.out, resumed.err
    weights = load_checkpoint("m.safetensors").model.state_dict()
    assert run(*train("--overwrite")).code == 0
    whole = load_checkpoint("m.safetensors")
    assert all(torch.equal(value, weights[key]) for key, value in whole.model.state_dict().items())
    assert "interrupted" not in whole.trained
    assert run(*train("--resume")).code == 2  # a finished checkpoint is not replaced


@pytest.mark.slow
def test_a_finished_run_is_trained_longer_and_its_checkpoint_is_never_lost(run, here):
    checkpoint, folder = here / "m.safetensors", here / "m.run"
    options = ("--data", "A", "--task", "secondary_structure", "--log", "none", "-o", checkpoint)

    def train_longer(*more):
        return run("train", "gcn", *options, *more)

    assert train_longer("--epochs", 2).code == 0
    saved = checkpoint.read_bytes()
    refused = [
        (("--epochs", 2, "--resume"), "finished 2 epochs"),
        (("--epochs", 2, "--resume", "--overwrite"), "finished 2 epochs"),
        (("--epochs", 3, "--resume", "--lr", 0.1), "config.lr"),
        (("--epochs", 1, "--resume", "--overwrite"), "finished 2 epochs"),
    ]
    for more, message in refused:
        result = train_longer(*more)
        assert result.code == 2 and message in result.err and checkpoint.read_bytes() == saved, result.err
    stopped = train_longer("--epochs", 3, "--resume", "--callback", "stopping:term")
    assert stopped.code == 143 and "--resume" in stopped.err and checkpoint.read_bytes() == saved, stopped.err
    result = train_longer("--epochs", 4, "--resume")
    assert result.code == 0 and re.findall(r"^epoch +(\d+)", result.out, re.MULTILINE) == ["3", "4"], result.err
    assert load_checkpoint(checkpoint).trained["epochs"] == 4 and "resumed with 4 epochs" in result.err
    saved = checkpoint.read_bytes()
    shutil.rmtree(folder)
    for more in ((), ("--overwrite",)):
        result = train_longer("--epochs", 6, "--resume", *more)
        assert result.code == 2 and "no training state" in result.err and checkpoint.read_bytes() == saved


@pytest.mark.slow
def test_before_the_first_epoch_nothing_is_kept(run, here):
    stopped = run(*train("--callback", "stopping:at_once"))
    assert stopped.code == 143 and "first validated epoch" in stopped.err
    assert not list(here.glob("m.safetensors*"))


@pytest.mark.slow
def test_an_earlier_checkpoint_is_replaced_by_the_best_epoch(run, here):
    (here / "m.safetensors").write_text("earlier")
    assert run(*train("--callback", "stopping:term", "--overwrite")).code == 143
    assert load_checkpoint("m.safetensors").trained["epochs"] == 2


COMMANDS = {
    "design": ("protgraph_plugins.design.design_command.load_model", ["design", "A/1a19.bcif", "-o", "x.fasta"]),
    "score": ("protgraph_plugins.design.score_command.load_model", ["score", "A/1a19.bcif", "-o", "x.csv"]),
    "generate": ("protgraph.checkpoint.load_checkpoint", ["generate", "m.safetensors", "-o", "x.fasta"]),
    "attention": ("protgraph.featurize.iter_graphs", ["attention", "transformer", "A/1a19.bcif", "-o", "x"]),
    "view": ("protgraph.structure.io.read_residues", ["view", "A/1a19.bcif", "-o", "x.html"]),
    "check": ("protgraph.cli.check_reports._checked", ["check", "pyg_conv", "--table", "x.md"]),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("name", COMMANDS)
def test_other_commands_end_with_one_line(run, here, monkeypatch, name, number):
    place, command = COMMANDS[name]
    monkeypatch.setattr("protgraph.checkpoint.load_checkpoint", lambda *_, **__: None)
    monkeypatch.setattr(place, lambda *_, **__: os.kill(os.getpid(), number))
    before, result = handlers(), run(*command)
    assert result.code == 128 + number and handlers() == before
    assert len(result.err.splitlines()) == 1 and ("SIGTERM" in result.err) == (number == signal.SIGTERM), result.err
    assert not list(here.glob("x*"))


def test_signals_raise_once_and_handlers_are_restored():
    before = handlers()
    for number, kind in ((signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)):
        with pytest.raises(kind), raise_on_signals():
            try:
                os.kill(os.getpid(), number)
            finally:
                os.kill(os.getpid(), number)  # within a second: counts as the first one
        assert handlers() == before


def test_ignored_signals_and_other_handlers_are_left_alone():
    for handler in (signal.SIG_IGN, lambda *_: None):
        before = signal.signal(signal.SIGINT, handler)
        try:
            with pytest.raises(Terminated), raise_on_signals():
                assert signal.getsignal(signal.SIGINT) is handler
                os.kill(os.getpid(), signal.SIGTERM)
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)


def test_processes_of_further_devices_ignore_both(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    with raise_on_signals():
        assert handlers() == [signal.SIG_IGN, signal.SIG_IGN]


def stop(args, number, when, *, group=False) -> tuple[int, str]:
    """Start ``protgraph``, send a signal when its output matches, and return exit code and output."""
    path = Path("log.txt")
    with path.open("w") as log:
        command = [sys.executable, "-m", "protgraph", *map(str, args)]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    start = time.monotonic()
    while not re.search(when, path.read_text()):
        assert process.poll() is None and time.monotonic() - start < 200, path.read_text()
        time.sleep(0.02)
    (os.killpg if group else os.kill)(process.pid, number)
    return process.wait(60), path.read_text()


@pytest.mark.slow
def test_two_processes_keep_the_best_epoch_and_are_resumed(run, here):
    """A run is ended by SIGTERM to one process, its continuation by Ctrl-C, which is SIGINT to both."""
    args = ["train", "gcn", "--data", "A", "--task", "secondary_structure", "--epochs", 4, "-o", "m.safetensors"]
    args += ["--devices", 2, "--strategy", "ddp", "--callback", "stopping:slow"]
    for number, epoch, more in ((signal.SIGTERM, 2, []), (signal.SIGINT, 3, ["--resume"])):
        code, log = stop(args + more, number, f"epoch +{epoch} ", group=number == signal.SIGINT)
        assert code == 128 + number and "Traceback" not in log, log
        trained = load_checkpoint("m.safetensors").trained
        assert trained["interrupted"] == number.name and trained["epochs"] == epoch
    command = [sys.executable, "-m", "protgraph", *map(str, args)]
    assert subprocess.run([*command, "--resume"], timeout=200).returncode == 0
    weights = load_checkpoint("m.safetensors").model.state_dict()
    assert subprocess.run([*command, "--overwrite"], timeout=200).returncode == 0
    whole = load_checkpoint("m.safetensors").model.state_dict()
    assert all(torch.equal(value, weights[key]) for key, value in whole.items())


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "group"), [(1, False), (2, True)], ids=["one process", "two processes"])
def test_featurization_ends_with_a_line_and_continues(run, here, jobs, group):
    args = ["featurize", "A", "-f", "sasa", "-f", "knn", "-o", "graphs", "--jobs", jobs]
    path = Path(".graphs.parts")
    command = [sys.executable, "-m", "protgraph", *map(str, args)]
    with open("log.txt", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    while process.poll() is None and not list(path.glob("*/*")):
        time.sleep(0.005)
    (os.killpg if group else os.kill)(process.pid, signal.SIGTERM)
    code, text = process.wait(60), Path("log.txt").read_text()
    assert code == 143 and "SIGTERM" in text and "Traceback" not in text and not Path("graphs").exists()
    assert run(*args).code == 0 and Path("graphs").is_dir() and not path.exists()
