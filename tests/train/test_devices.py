"""Unsupported devices and strategies are errors before any data are prepared."""

from __future__ import annotations

import sys

import pytest
import torch
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy

from protgraph.cli.app import main
from protgraph.errors import OptionError
from protgraph.train import fit
from protgraph.train.devices import STRATEGIES, check_strategy

CPU = torch.device("cpu")
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
