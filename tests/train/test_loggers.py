"""Loggers by name receive the rows of the history."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from lightning.pytorch.loggers import CSVLogger

from protgraph.errors import MissingExtraError, OptionError, ProtgraphError
from protgraph.train import fit
from protgraph.train.loggers import LOGGERS, logger_by_name


def read_mlflow(folder: Path) -> list[dict[str, float]]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    [run] = client.search_runs([client.get_experiment_by_name("protgraph").experiment_id])
    assert run.info.status == "FINISHED" and run.data.params["model"] == "gcn"
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    return [{name: values[i].value for name, values in histories.items() if name != "lr-AdamW"} for i in range(2)]


def read_wandb(folder: Path) -> list[dict[str, float]]:
    """Read the history of a ``.wandb`` file: records of protocol buffers in the log format of LevelDB."""
    from wandb.proto.wandb_internal_pb2 import Record

    [path] = folder.glob("offline-run-*/*.wandb")
    data, at, part, rows = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        part, at = part + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # a full record, or the last part of one
            record, part = Record.FromString(part), b""
            rows.append({".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item})
    return [row for row in rows if "train_loss" in row]


READERS = {"mlflow": read_mlflow, "wandb": read_wandb}


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


def test_fit_accepts_the_names_of_the_command(small, tiny, quick, tmp_path):
    fit(tiny, small, "helix", config=quick, logger="tensorboard", run_dir=tmp_path / "a")
    assert list((tmp_path / "a" / "tensorboard").rglob("events.out.tfevents.*"))
    result = fit(
        tiny, small, "helix", config=quick, logger=["csv", CSVLogger(tmp_path / "own")], run_dir=tmp_path / "b"
    )
    for folder in (tmp_path / "b" / "csv", tmp_path / "own"):
        (path,) = folder.rglob("metrics.csv")
        rows = [row for row in csv.DictReader(path.read_text().splitlines()) if row["train_loss"]]
        assert len(rows) == len(result.history)


@pytest.mark.parametrize(("logger", "part"), [("tensorboard", "run_dir"), (["csv"], "run_dir"), (3, "its name")])
def test_a_logger_without_a_folder_is_an_error(small, tiny, quick, logger, part):
    with pytest.raises(OptionError, match=part):
        fit(tiny, small, "helix", config=quick, logger=logger)


def test_loggers_receive_the_options(small, tiny, quick, tmp_path):
    logger, _ = logger_by_name("csv", tmp_path, run="x")
    received = []
    logger.log_hyperparams = received.append
    fit(tiny, small, "helix", config=quick, logger=[logger])
    [options] = received
    assert (options["model"], options["task"]) == (tiny.name, "helix")
    assert options["config"]["lr"] == quick.lr and options["dataset"]["version"] == small.version


@pytest.mark.parametrize("kind", sorted(READERS))
def test_the_command_writes_offline_and_only_to_the_folder_of_the_run(kind, structures_dir, tmp_path):
    if importlib.util.find_spec(kind) is None:
        pytest.skip(f"the logger package {kind} is not installed")
    for name in ("data", "cwd", "home"):
        (tmp_path / name).mkdir()
    for name in ("1ajj", "1crn", "1vii", "2erl"):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path / "data")
    services = ("WANDB_", "MLFLOW_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(services)}
    environment |= {"HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1", "PROTGRAPH_CACHE": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "protgraph", "train", "gcn", "--data", str(tmp_path / "data")]
    command += ["--task", "secondary_structure", "--epochs", "2", "--log", "csv", "--log", kind]
    command += ["-o", str(tmp_path / "out" / "m.safetensors"), "--device", "cpu"]
    options = {"env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, cwd=tmp_path / "cwd", **options)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "cwd").iterdir())
    run = tmp_path / "out" / "m.run"
    assert {path.name for path in run.iterdir()} == {"csv", kind}
    with (run / "csv" / "version_0" / "metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["train_loss"]]
    read = READERS[kind](run / kind)
    assert len(rows) == len(read) == 2
    for row, own in zip(rows, read, strict=True):
        names = ("train_loss", "val_loss", "accuracy", "macro_f1")
        assert [own[name] for name in names] == pytest.approx([float(row[name]) for name in names], rel=1e-6)


def test_an_unavailable_service_is_an_error_with_its_variable(tmp_path, monkeypatch):
    class Service:
        @property
        def experiment(self):
            raise RuntimeError("no key")

    loggers = sys.modules["protgraph.train.loggers"]
    monkeypatch.setattr(loggers, "WandbLogger", lambda **options: Service())
    monkeypatch.setattr(loggers, "find_spec", lambda name: True)
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(ProtgraphError, match="WANDB_MODE=online: no key"):
        logger_by_name("wandb", tmp_path, run="x")
    monkeypatch.delenv("WANDB_MODE")
    assert str(tmp_path / "wandb") in logger_by_name("wandb", tmp_path, run="x")[1]


@pytest.mark.parametrize("kind", ["wandb", "mlflow", "tensorboard"])
def test_a_missing_package_is_an_error_with_the_install_command(kind, tmp_path, monkeypatch):
    loggers = sys.modules["protgraph.train.loggers"]
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'protgraph-pyg\[{kind}\]'"):
        logger_by_name(kind, tmp_path, run="x")


def test_unknown_loggers_are_errors(tmp_path):
    with pytest.raises(OptionError, match="excel") as e:
        logger_by_name("excel", tmp_path, run="x")
    assert all(kind in str(e.value) for kind in LOGGERS)
