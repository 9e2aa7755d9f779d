"""Callbacks and loggers of the user in fit, and errors for invalid options of the Trainer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, RichProgressBar
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy

from protgraph.cli.app import main
from protgraph.errors import OptionError, ProtgraphError
from protgraph.train import fit
from protgraph.train.trainer import STRATEGIES, TrainerOptions, check_strategy, process_environment
from tests.train.runs import run


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


# --- devices and strategy --------------------------------------------------------------------------------------------


CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]
REFUSED = ["fsdp_cpu_offload", "deepspeed", "ddp_spawn", "ddp_fork", "ddp_notebook", "dp", "nonsense"]


@pytest.mark.parametrize(
    ("devices", "strategy"), [(1, "auto"), (1, "ddp"), (2, "auto"), (3, "ddp"), (2, "fsdp"), ("auto", "auto")]
)
def test_processes_on_the_cpu_are_allowed(devices, strategy):
    check_strategy(CPU, devices, strategy)


@pytest.mark.parametrize("strategy", REFUSED)
@pytest.mark.parametrize("devices", [1, 2])
def test_other_strategies_are_errors_with_the_allowed_ones(devices, strategy):
    with pytest.raises(OptionError, match=f"'{strategy}'") as e:
        check_strategy(CPU, devices, strategy)
    assert all(name in str(e.value) for name in STRATEGIES)


@pytest.mark.parametrize("devices", [0, -1, "x", [0, 1]])
def test_devices_that_do_not_exist_are_errors(devices):
    with pytest.raises(OptionError, match="devices = ") as e:
        check_strategy(CPU, devices, "auto")
    assert repr(devices) in str(e.value)


def test_strategy_objects_are_checked_by_type():
    check_strategy(CPU, 2, DDPStrategy())
    check_strategy(CPU, 1, SingleDeviceStrategy("cpu"))
    with pytest.raises(OptionError, match="DDPStrategy"):
        check_strategy(CPU, 2, DDPStrategy(start_method="spawn"))


ALLOCATION = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "4"}
BATCH = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NNODES": "1"}


@pytest.mark.parametrize(
    "variables",
    [
        ALLOCATION,
        ALLOCATION | {"SLURM_JOB_NAME": "interactive"},
        ALLOCATION | BATCH,
        ALLOCATION | BATCH | {"SLURM_NTASKS_PER_NODE": "4"},
        ALLOCATION | BATCH | {"SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "2"},
        ALLOCATION | BATCH | {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1"},
    ],
    ids=["salloc", "salloc, named job", "sbatch", "tasks per node", "two nodes", "srun of one task"],
)
@pytest.mark.parametrize("devices", [1, 2])
def test_a_process_that_srun_did_not_start_trains_as_without_slurm(variables, devices, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    check_strategy(CPU, devices, "auto")
    (environment,) = process_environment()
    assert not environment.creates_processes_externally and environment.world_size() == 1


TASK_OF_SRUN = ALLOCATION | BATCH | {"SLURM_NTASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}


def test_the_tasks_of_srun_are_the_processes_of_one_run(monkeypatch):
    assert process_environment() == []
    for name, value in (TASK_OF_SRUN | {"SLURM_NTASKS_PER_NODE": "2"}).items():
        monkeypatch.setenv(name, value)
    assert process_environment() == []
    check_strategy(CPU, 2, "auto")
    monkeypatch.delenv("SLURM_NTASKS_PER_NODE")
    with pytest.raises(OptionError, match="ntasks-per-node"):
        check_strategy(CPU, 2, "auto")


def test_fit_in_an_allocation_of_four_tasks_equals_fit_without(small, tiny, quick, trained, monkeypatch):
    for name, value in ALLOCATION.items():
        monkeypatch.setenv(name, value)
    assert fit(tiny, small, "helix", config=quick).history == trained.history


@pytest.mark.slow
def test_two_tasks_of_srun_train_together(structures_dir, tmp_path):
    outs = [tmp_path / str(rank) / "m.safetensors" for rank in range(2)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"SLURM_NTASKS_PER_NODE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    processes = []
    for rank, out in enumerate(outs):
        out.parent.mkdir()
        runs = json.dumps([(str(out), {"config": {"epochs": 2}, "devices": 2})])
        command = [sys.executable, "-m", "tests.train.runs", str(structures_dir), runs]
        task = TASK_OF_SRUN | common | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}
        processes.append(subprocess.Popen(command, cwd=ROOT, env=os.environ | task))
    assert [process.wait(240) for process in processes] == [0, 0]
    assert outs[0].is_file() and not outs[1].exists()  # the first process writes
    alone = tmp_path / "alone" / "m.safetensors"
    alone.parent.mkdir()
    run(alone, structures_dir, {"config": {"epochs": 2}})
    together, expected = (json.loads(path.with_suffix(".json").read_text())["history"] for path in (outs[0], alone))
    assert [row["train_loss"] for row in together] == pytest.approx([row["train_loss"] for row in expected], rel=1e-4)


def test_the_strategy_is_checked_before_data_are_prepared(small, tiny, quick, monkeypatch):
    monkeypatch.setattr(
        sys.modules["protgraph.train.run_setup"], "prepare", lambda *args, **options: pytest.fail("prepared")
    )
    with pytest.raises(OptionError, match="'deepspeed'"):
        fit(tiny, small, "helix", config=quick, strategy="deepspeed")


@pytest.mark.parametrize(
    "options",
    [
        ["--strategy", "deepspeed", "--devices", "2"],
        ["--strategy", "deepspeed"],
        ["--strategy", "nonsense"],
        ["--devices", "0"],
        ["--precision", "float16"],
        ["--log", "excel"],
        ["--log", "csv", "--log", "none"],
    ],
)
def test_the_command_prints_one_error_and_exits_with_2(options, tmp_path, capsys):
    arguments = ["--data", "pdb_core", "--task", "ligand_binding", "--device", "cpu", "--log", "none"]
    arguments = arguments[: -2 if "--log" in options else None]
    with pytest.raises(SystemExit) as e:
        main(["train", "gcn", *arguments, *options, "-o", str(tmp_path / "m.safetensors")])
    error = capsys.readouterr().err
    assert e.value.code == 2 and "error: " in error and "Traceback" not in error
    assert options[1] in error and not list(tmp_path.iterdir())
