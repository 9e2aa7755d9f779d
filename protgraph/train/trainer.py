"""Lightning Trainer of a run: its options and callbacks, and the weights of the best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, ProgressBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.strategies import Strategy

from protgraph.errors import OptionError, ProtgraphError
from protgraph.file_io import output_errors
from protgraph.task.task import Task
from protgraph.train.callbacks import (
    EpochCallback,
    EpochLearningRate,
    SignalCallback,
    StateCheckpoint,
    TrainingBar,
    best_checkpoint,
    early_stopping,
)
from protgraph.train.config import FitConfig
from protgraph.train.data_module import FitData
from protgraph.train.devices import process_environment, trainer_devices
from protgraph.train.module import FitModule, resolve_strategy
from protgraph.train.run_folder import RunFolder, StateFileIO

__all__ = ["TrainerOptions", "load_best", "load_best_so_far", "train"]

_LONGEST = 1e9  # seconds; timedelta overflows above 8.6e13


@dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    """Options of :func:`protgraph.train.fit` that do not determine the weights; see there."""

    devices: int | str | Sequence[int]
    strategy: str | Strategy
    callbacks: Sequence[Callback]
    logger: Logger | Sequence[Logger] | None
    workers: int
    state_interval: float
    progress: bool
    on_epoch: Callable[[Mapping[str, float]], None] | None

    def __post_init__(self) -> None:
        if not (isinstance(self.callbacks, Sequence) and all(isinstance(c, Callback) for c in self.callbacks)):
            raise OptionError(f"fit: callbacks = {self.callbacks!r}. Use a list of Lightning callbacks.")
        loggers = self.logger if isinstance(self.logger, Sequence) else [self.logger or None]
        if not all(one is None or isinstance(one, Logger) for one in loggers):
            raise OptionError(
                f"fit: logger = {self.logger!r}. Use a Lightning logger, its name, a list of those, or None."
            )
        if self.workers < 0:
            raise OptionError(f"fit: workers = {self.workers}. Use 0 or larger.")
        if not 0 <= self.state_interval <= _LONGEST:
            raise OptionError(f"fit: state_interval = {self.state_interval}. Use seconds from 0 to {_LONGEST:g}.")

    @property
    def reads_batches(self) -> bool:
        """True if a callback of the user receives batches."""
        hooks = [f"on_{stage}_batch_{end}" for stage in ("train", "validation") for end in ("start", "end")]
        own = [(getattr(type(one), hook), getattr(Callback, hook)) for one in self.callbacks for hook in hooks]
        return any(callable(hook) and hook is not empty for hook, empty in own)  # None: Lightning skips it


def train(
    module: FitModule,
    data: FitData,
    folder: RunFolder,
    device: torch.device,
    options: TrainerOptions,
    logged: Mapping[str, Any],
    *,
    state: Path | None,
) -> Path | None:
    """Run Lightning's Trainer; return the checkpoint of the best epoch, None if no epoch was validated.

    ``logged``: options of the run for the loggers. ``state``: training state to resume from.
    """
    config, best = module.config, best_checkpoint(module.task, folder.checkpoints)
    callbacks = _callbacks(module.task, config, options)
    state_files = [StateFileIO()] if isinstance(options.strategy, str) else []  # a Strategy has its own
    try:
        trainer = pl.Trainer(
            max_epochs=config.epochs,
            max_time=None if config.max_time is None else timedelta(seconds=config.max_time),
            **trainer_devices(device, options.devices),
            strategy=resolve_strategy(options.strategy),
            plugins=[*state_files, *process_environment()],
            precision="bf16-mixed" if config.precision == "bfloat16" else "32-true",
            gradient_clip_val=config.gradient_clip,
            callbacks=[
                *callbacks,
                best,
                *([] if folder.is_temporary else [StateCheckpoint(folder.state, options.state_interval)]),
            ],
            logger=options.logger or False,
            log_every_n_steps=min(50, len(data.batches)),
            enable_progress_bar=any(isinstance(item, ProgressBar) for item in callbacks),
            enable_model_summary=False,
            use_distributed_sampler=False,  # FitData splits each global batch
            num_sanity_val_steps=0,
            inference_mode=False,
        )
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as e:
        raise OptionError(
            f"fit: Lightning's Trainer refuses devices = {options.devices!r}, strategy = {options.strategy!r} or the "
            f"callbacks: {e}"
        ) from e
    for item in trainer.loggers:
        item.log_hyperparams(dict(logged))
    with output_errors(folder.path):  # of loggers; checkpoints name their file
        trainer.fit(module, datamodule=data, ckpt_path=state, weights_only=True)
    return Path(best.best_model_path) if best.best_model_path else None


def _callbacks(task: Task, config: FitConfig, options: TrainerOptions) -> list[Callback]:
    """Return all callbacks but those that write checkpoints."""
    callbacks = [SignalCallback(), *early_stopping(task, config), *options.callbacks]
    if options.on_epoch is not None:
        callbacks.append(EpochCallback(options.on_epoch))
    if options.progress and not any(isinstance(one, ProgressBar) for one in callbacks):
        callbacks.append(TrainingBar())
    if options.logger:
        callbacks.append(EpochLearningRate())
    return callbacks


def load_best(module: FitModule, path: Path | None) -> dict[str, Any]:
    """Load the weights of the best epoch into the model; return its ``row`` of the history and its ``threshold``."""
    name, task = module.model.spec.name, module.task
    if path is None:
        raise ProtgraphError(
            f"Training of {name!r} ended before the first validation. A callback or strategy stopped it: remove it, "
            "or let it stop after an epoch."
        )
    last, best = module.history[-1], _read_best(path)
    row = best["row"]
    if _is_undefined(module, row):
        note = f"{task.monitor} is undefined: {name} predicts the same value everywhere. "
        module.notes = (*module.notes, f"{note}Epoch {row['epoch']:.0f} was kept")
    elif not _is_finite(module, row):
        if module.nonfinite is not None:
            raise module.nonfinite
        needs = "labels of both kinds" if task.target.kind == "multilabel" else "more labels, of different values"
        raise ProtgraphError(
            f"Training of {name!r} has no usable epoch: train_loss {last['train_loss']}, {task.monitor} "
            f"{last[task.monitor]} on validation. If the loss is not finite, use a smaller lr. If the metric is "
            f"undefined, 'val' needs {needs}."
        )
    _load_weights(module, best)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()  # the first process removes the file later
    return best


def load_best_so_far(module: FitModule, path: Path) -> dict[str, Any] | None:
    """Load the best epoch of an interrupted run as :func:`load_best`; return None if there is none that is usable.

    Unlike that function it waits for no other process.
    """
    if not path.is_file():
        return None
    best = _read_best(path)
    if not _is_finite(module, best["row"]) and not _is_undefined(module, best["row"]):
        return None
    _load_weights(module, best)
    module.history = max(module.history, best["history"], key=len)  # the state may be older
    return best


def _read_best(path: Path) -> dict[str, Any]:
    """Return ``row``, ``threshold``, ``history`` and ``weights`` of the checkpoint of the best epoch."""
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    state = checkpoint["protgraph"]
    return {
        "row": state["history"][-1],
        "threshold": state["thresholds"][-1],
        "history": state["history"],
        "weights": checkpoint["state_dict"],
    }


def _is_finite(module: FitModule, row: Mapping[str, float]) -> bool:
    return math.isfinite(row[module.task.monitor]) and math.isfinite(row["val_loss"])


def _is_undefined(module: FitModule, row: Mapping[str, float]) -> bool:
    """Return True if the monitored metric has no value because the model predicts the same for all rows."""
    return module.predicts_constant and math.isfinite(row["val_loss"]) and math.isnan(row[module.task.monitor])


def _load_weights(module: FitModule, best: Mapping[str, Any]) -> None:
    module.unshard()
    weights = best["weights"].items()
    of_model = {key.removeprefix("model."): value for key, value in weights if key.startswith("model.")}
    module.model.load_state_dict(of_model)
