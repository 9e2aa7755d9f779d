"""Ctrl-C and SIGTERM keep the finished part of predict, embed and bench, and say how to continue."""

from __future__ import annotations

import csv
import importlib
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from protgraph.errors import Interrupted
from protgraph.inference import embed, predict
from tests.cli.test_signals import stop

FILES = 6


@pytest.fixture
def here(tmp_path, monkeypatch, structures_dir):
    """Run in a folder with some structures."""
    (tmp_path / "A").mkdir()
    for path in sorted(structures_dir.iterdir(), key=lambda path: path.stat().st_size)[:FILES]:
        shutil.copyfile(path, tmp_path / "A" / path.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkpoint(here, run):
    options = ("--task", "secondary_structure", "--epochs", 1, "-q", "--log", "none", "-o", "m.safetensors")
    assert run("train", "gcn", "--data", "A", *options).code == 0
    return "m.safetensors"


def interrupt_at(monkeypatch, place, call, number=signal.SIGINT):
    """Send a signal to this process instead of the given call of a function."""
    module, _, name = place.rpartition(".")
    module = importlib.import_module(module)
    function, calls = getattr(module, name), []

    def counted(*args, **options):
        calls.append(args)
        if len(calls) == call:
            os.kill(os.getpid(), number)
        return function(*args, **options)

    monkeypatch.setattr(module, name, counted)


def one_by_one(monkeypatch, module):
    """Make each protein a batch of its own."""
    batches = lambda items, *_, **__: ([item] for item in items)  # noqa: E731
    monkeypatch.setattr(importlib.import_module(module), "pack", batches)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_predict_keeps_finished_files_and_lists_the_others(run, here, checkpoint, monkeypatch, number):
    assert run("predict", checkpoint, "A", "-o", "whole.csv").code == 0
    with monkeypatch.context() as patch:
        one_by_one(patch, "protgraph.inference.model_run")
        interrupt_at(patch, "protgraph.inference.prediction.collate", 4, number)
        result = run("predict", checkpoint, "A", "-o", "part.csv")
    assert result.code == 128 + number and "@part.csv.left.txt" in result.err, result.err
    left = Path("part.csv.left.txt").read_text().split()
    done = {row["file"] for row in rows_of("part.csv")}
    assert 1 <= len(done) < FILES and len(left) + len(done) == FILES and not done & set(left)
    assert run("predict", checkpoint, "@part.csv.left.txt", "-o", "rest.csv").code == 0
    assert rows_of("part.csv") + rows_of("rest.csv") == rows_of("whole.csv")


def test_embed_keeps_finished_files_and_lists_the_others(run, here, checkpoint, monkeypatch):
    whole = embed(checkpoint, "A")
    with monkeypatch.context() as patch:
        one_by_one(patch, "protgraph.inference.model_run")
        interrupt_at(patch, "protgraph.inference.embedding.collate", 4)
        result = run("embed", checkpoint, "A", "-o", "part.npz")
    assert result.code == 130 and "@part.npz.left.txt" in result.err, result.err
    part = np.load("part.npz")
    n = len(part["protein"])
    assert 1 <= n < FILES and list(part["files"]) == list(whole.files[:n])
    np.testing.assert_allclose(part["node"], whole.node[: whole.ptr[n]], atol=1e-5)
    assert len(Path("part.npz.left.txt").read_text().split()) == FILES - len(set(part["files"]))


def test_an_interruption_before_the_first_file_writes_nothing(run, here, checkpoint, monkeypatch):
    interrupt_at(monkeypatch, "protgraph.inference.prediction.collate", 1)
    result = run("predict", checkpoint, "A", "-o", "part.csv")
    assert result.code == 130 and "nothing is written" in result.err
    assert not list(here.glob("part.csv*"))


def test_in_python_the_result_is_in_the_exception(here, checkpoint, monkeypatch):
    one_by_one(monkeypatch, "protgraph.inference.model_run")
    interrupt_at(monkeypatch, "protgraph.inference.prediction.collate", 3)
    with pytest.raises(Interrupted) as caught:
        predict(checkpoint, "A")
    assert caught.value.signal == signal.SIGINT and len(caught.value.result.rows) > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_benchmark_prints_how_many_runs_are_kept(here, number):
    spec = 'name = "b"\ndataset = "A"\ntasks = ["secondary_structure"]\nmodels = ["majority", "gcn"]\nseeds = [0, 1]\n'
    Path("spec.toml").write_text(spec + "[fit]\nepochs = 300\npatience = 300\n")
    code, log = stop(["bench", "spec.toml", "-o", "runs"], number, r"1/4 ")
    assert code == 128 + number and re.search(r"[12] of 4 runs are finished", log) and "repeat the command" in log, log
