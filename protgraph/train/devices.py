"""Devices and strategy of a run, checked by Lightning before any data are prepared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from protgraph.errors import OptionError, suggest
from protgraph.train.session import quiet_lightning

if TYPE_CHECKING:
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import Strategy

__all__ = ["STRATEGIES", "check_strategy", "process_environment", "trainer_devices"]

STRATEGIES = ("auto", "ddp", "ddp_find_unused_parameters_true", "fsdp")
_ALLOWED = (
    f"Allowed: {', '.join(STRATEGIES)}, whose processes are started by a command. Use 'ddp' for several devices, "
    "'fsdp' if the weights and the optimizer state do not fit one of them."
)


def trainer_devices(device: torch.device, devices: int | str | Sequence[int]) -> dict[str, Any]:
    """Return ``accelerator`` and ``devices`` of ``lightning.pytorch.Trainer``."""
    is_gpu = device.type == "cuda"
    own = [device.index or 0] if is_gpu and devices == 1 else devices
    return {"accelerator": "gpu" if is_gpu else "cpu", "devices": own}


def process_environment() -> list[LightningEnvironment]:
    """Return the plugin of ``lightning.pytorch.Trainer`` that starts the processes of a run, if Lightning needs it.

    In a job of SLURM, Lightning 2.6 takes every process for one of the ``SLURM_NTASKS`` tasks that ``srun`` starts. A
    process of a batch script, an allocation or a notebook is none, and no further task follows: Lightning refuses the
    devices or waits for the others. Only ``srun`` sets ``SLURM_STEP_ID``.
    """
    from lightning.pytorch.plugins.environments import LightningEnvironment, TorchElasticEnvironment

    tasks_of_step = int(os.environ.get("SLURM_STEP_NUM_TASKS") or os.environ.get("SLURM_NTASKS") or 1)
    is_task_of_srun = "SLURM_STEP_ID" in os.environ and tasks_of_step > 1
    if "SLURM_NTASKS" not in os.environ or is_task_of_srun or TorchElasticEnvironment.detect():
        return []
    return [LightningEnvironment()]


def check_strategy(device: torch.device, devices: int | str | Sequence[int], strategy: str | Strategy) -> None:
    """Raise if Lightning cannot use the devices, or if the strategy does not fit :func:`protgraph.train.fit`.

    A strategy must clip gradients by their norm, write complete checkpoints, and return to the caller in the process
    that trained. Lightning's sharded strategies (FSDPStrategy, DeepSpeed) and those that spawn or fork processes do
    not; ``"fsdp"`` is :class:`protgraph.train.module.ShardedStrategy`.
    """
    from lightning.pytorch import Trainer
    from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
    from lightning.pytorch.utilities.exceptions import MisconfigurationException

    from protgraph.train.module import ShardedStrategy, resolve_strategy

    if isinstance(strategy, str):
        if strategy not in STRATEGIES:
            raise OptionError(f"fit: strategy = {strategy!r}.{suggest(strategy, STRATEGIES)} {_ALLOWED}")
        try:
            with quiet_lightning():
                used = Trainer(
                    strategy=resolve_strategy(strategy),
                    plugins=[*process_environment()],
                    logger=False,
                    enable_checkpointing=False,
                    enable_progress_bar=False,
                    enable_model_summary=False,
                    **trainer_devices(device, devices),
                ).strategy
        except (MisconfigurationException, ValueError, TypeError, RuntimeError) as e:
            raise OptionError(
                f"fit: devices = {devices!r} on {device.type}. Allowed: the number of processes (cpu), or of GPUs that "
                f"exist (cuda), 1 or more. {' '.join(str(e).split())}"
            ) from e
    else:
        used = strategy
    if isinstance(used, SingleDeviceStrategy | ShardedStrategy):
        return
    if type(used) is not DDPStrategy or used._start_method != "popen":
        raise OptionError(
            f"fit: strategy = {strategy!r}, which is {type(used).__name__} here. {_ALLOWED} In a notebook, use one "
            "device, or the command 'protgraph train'."
        )
