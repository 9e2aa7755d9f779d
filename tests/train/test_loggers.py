"""Loggers by name receive the rows of the history."""

from __future__ import annotations

import csv
import importlib.util
import sys
from types import SimpleNamespace

import pytest

from protgraph.errors import MissingExtraError, OptionError
from protgraph.train import fit
from protgraph.train.loggers import LOGGERS, logger_by_name


def test_csv_has_the_rows_of_the_history(small, tiny, quick, tmp_path):
    logger, place = logger_by_name("csv", tmp_path, run="x")
    result = fit(tiny, small, "helix", config=quick, logger=logger)
    with open(place, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["train_loss"]]
    assert [float(row["accuracy"]) for row in rows] == pytest.approx([row["accuracy"] for row in result.history])
    assert [float(row["train_loss"]) for row in rows] == pytest.approx([row["train_loss"] for row in result.history])


def test_tensorboard_writes_events(small, tiny, quick, tmp_path):
    logger, _ = logger_by_name("tensorboard", tmp_path, run="x")
    fit(tiny, small, "helix", config=quick, logger=logger)
    assert list(tmp_path.rglob("events.out.tfevents.*"))


def test_trackio_receives_the_rows(small, tiny, quick, tmp_path, monkeypatch):
    calls = []

    def record(name):
        return lambda *args, **options: calls.append((name, args, options))

    module = SimpleNamespace(**{name: record(name) for name in ("init", "log", "finish")})
    module.__spec__ = importlib.util.spec_from_loader("trackio", None)
    monkeypatch.setitem(sys.modules, "trackio", module)
    logger, _ = logger_by_name("trackio", tmp_path, run="x")
    result = fit(tiny, small, "helix", config=quick, logger=logger)
    assert calls[0][0] == "init" and calls[-1][0] == "finish"
    values = [args[0]["accuracy"] for name, args, _ in calls if name == "log" and "accuracy" in args[0]]
    assert values == pytest.approx([row["accuracy"] for row in result.history])


@pytest.mark.parametrize("kind", ["wandb", "mlflow", "trackio", "tensorboard"])
def test_a_missing_package_is_named_with_the_command(kind, tmp_path, monkeypatch):
    loggers = sys.modules["protgraph.train.loggers"]
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'protgraph-pyg\[{kind}\]'"):
        logger_by_name(kind, tmp_path, run="x")


def test_unknown_loggers_are_errors(tmp_path):
    with pytest.raises(OptionError, match="excel") as e:
        logger_by_name("excel", tmp_path, run="x")
    assert all(kind in str(e.value) for kind in LOGGERS)
