"""Unsupported devices and strategies are errors before any data are prepared."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy

from protgraph.cli.app import main
from protgraph.errors import OptionError
from protgraph.train import fit
from protgraph.train.devices import STRATEGIES, check_strategy, process_environment
from tests.train.runs import run

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
