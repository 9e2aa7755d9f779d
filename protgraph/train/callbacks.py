"""Lightning callbacks of a run: best epoch, training state, early stopping, signals, one call per epoch.

The classes are subclasses of Lightning's, so that users may add a callback with the same settings: Lightning accepts
only one callback of a class, monitor and mode.
"""

from __future__ import annotations

import os
import pkgutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    TQDMProgressBar,
)

from protgraph.errors import CheckpointError, OptionError
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.session import signal_of

if TYPE_CHECKING:
    from protgraph.train.module import FitModule

__all__ = [
    "EpochCallback",
    "EpochLearningRate",
    "FitEarlyStopping",
    "RunCheckpoint",
    "SignalCallback",
    "StateCheckpoint",
    "TrainingBar",
    "best_checkpoint",
    "callback_by_name",
    "early_stopping",
]

BEST = "best"  # file name in the folder of a run
_UNLIMITED = 10**9  # epochs
_WRITING_SHARE = 0.01  # largest share of the time that writes the state at the end of epochs


class EpochCallback(Callback):
    """Call a function with each row of the history, in the first process only."""

    def __init__(self, function: Callable[[Mapping[str, float]], None]) -> None:
        self.function = function

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Call the function with the metrics of the epoch, in the first process only."""
        if trainer.is_global_zero and pl_module.history:
            self.function(pl_module.history[-1])


class TrainingBar(TQDMProgressBar):
    """One progress bar per training; Lightning adds one per validation, each of which stays in a notebook."""

    def on_validation_start(self, *_: Any) -> None:
        """Draw no bar."""

    def on_validation_batch_start(self, *_: Any) -> None:
        """Draw no bar."""

    def on_validation_batch_end(self, *_: Any) -> None:
        """Draw no bar."""

    def on_validation_end(self, *_: Any) -> None:
        """Draw no bar."""


class FitEarlyStopping(EarlyStopping):
    """Early stopping that ignores an epoch without the metric, e.g. one that another callback ended."""

    def __init__(self, monitor: str, **options: Any) -> None:
        super().__init__(monitor, strict=False, **options)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the count of epochs without improvement; the patience is that of the present options."""
        super().load_state_dict({**state_dict, "patience": self.patience})

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop at once if the run that is resumed had stopped; Lightning trains one more epoch."""
        if self.wait_count >= self.patience:
            trainer.should_stop = True


class EpochLearningRate(LearningRateMonitor):
    """Log the learning rate at the end of each epoch."""

    def __init__(self) -> None:
        super().__init__("epoch")


class RunCheckpoint(ModelCheckpoint):
    """Checkpoint in the folder of a run, which may be moved before the run is resumed.

    ModelCheckpoint forgets the best epoch if its folder has another path (Lightning 2.6.6, 2026-11-22).
    """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the best epoch with paths in the present folder; raise :class:`CheckpointError` if it is missing."""
        before, now = state_dict["dirpath"], self.dirpath

        def moved(path: str) -> str:
            return path.replace(before, str(now), 1) if path.startswith(before) else path

        paths = {key: moved(state_dict[key]) for key in ("best_model_path", "kth_best_model_path", "last_model_path")}
        models = {moved(path): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict(state_dict | paths | {"dirpath": now, "best_k_models": models})
        if self.best_model_path and not Path(self.best_model_path).is_file():
            raise CheckpointError(f"Cannot resume: {self.best_model_path} is missing. Start again without resume.")


class StateCheckpoint(Checkpoint):
    """Write the training state within an epoch at intervals of time, and at the end of epochs.

    It is written at the end of the first epoch and of the last. After those between, it is written if the interval has
    passed or if writing takes no more than 1 % of the time of training steps: a run with epochs of 0.1 s, whose state
    is written in 3 ms, repeats at most 0.3 s after an interruption.

    Lightning runs it after all other callbacks, whose states it contains, because it is a ``Checkpoint``.

    It is not written after the last batch of an epoch: Lightning 2.6 skips the validation of an epoch that is resumed
    there (measured 2026-11-22).

    ``path``: file of the state. ``interval``: seconds.
    """

    def __init__(self, path: Path, interval: float) -> None:
        self.path, self.interval = path, interval
        self._due = 0.0  # seconds of training

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the first interval."""
        self._written = time.monotonic()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if the interval has passed."""
        is_due = time.monotonic() - self._written >= self.interval
        if trainer.strategy.broadcast(is_due) and not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            trainer.save_checkpoint(self.path)
            self._written = time.monotonic()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: FitModule) -> None:
        """Save after the last epoch, or if enough time has passed."""
        start = time.monotonic()
        is_last = trainer.should_stop or trainer.current_epoch + 1 == trainer.max_epochs
        is_due = pl_module.seconds >= self._due or start - self._written >= self.interval
        if trainer.strategy.broadcast(is_last or is_due):  # the same in all processes
            trainer.save_checkpoint(self.path)
            self._written = time.monotonic()
            self._due = pl_module.seconds + (self._written - start) / _WRITING_SHARE


class SignalCallback(Callback):
    """Keep the handler of SIGTERM that was set before training, and end the other processes of an interrupted run.

    Lightning 2.6 calls its own handler first, which waits for the other processes in a collective operation and never
    returns if they are elsewhere; and its observer kills the first process within 5 s after another one has ended.
    """

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Keep the handler of SIGTERM before Lightning registers its own."""
        self._handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Restore the handler that was kept."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self._handler not in (None, signal.SIG_DFL):  # Lightning has registered its own by now
            signal.signal(signal.SIGTERM, self._handler)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Kill the processes of other devices after a signal, so that none waits for this one."""
        processes: list[Any] = getattr(trainer.strategy.launcher, "procs", [])
        if signal_of(exception) is not None and processes:
            for process in processes:
                process.kill()
                process.wait()
            processes.clear()  # the observer has the same list


def best_checkpoint(task: Task, folder: Path) -> ModelCheckpoint:
    """Keep the weights of the epoch with the best monitored metric on validation; of equal epochs, the first."""
    return RunCheckpoint(
        folder,
        BEST,
        monitor=task.monitor,
        mode=task.mode,
        save_weights_only=True,
        save_on_train_epoch_end=False,  # before `on_epoch` and the state, so that an interruption finds it
        enable_version_counter=False,
    )


def early_stopping(task: Task, config: FitConfig) -> list[EarlyStopping]:
    """Stop if the training loss is not finite, or after ``config.patience`` epochs without improvement."""
    callbacks: list[EarlyStopping] = [FitEarlyStopping("train_loss", patience=_UNLIMITED, check_finite=True)]
    if config.patience is not None:
        # An undefined metric counts as an epoch without improvement.
        callbacks.append(FitEarlyStopping(task.monitor, mode=task.mode, patience=config.patience, check_finite=False))
    return callbacks


def callback_by_name(text: str) -> Callback:
    """Import a Lightning callback; modules of the current folder can be imported too.

    Examples
    --------
    >>> type(callback_by_name("lightning.pytorch.callbacks:LearningRateMonitor")).__name__
    'LearningRateMonitor'
    """
    form = "Use MODULE:NAME, where NAME is a Lightning callback, or returns one without arguments."
    if ":" not in text:
        raise OptionError(f"Callback {text!r} names no module. {form}")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)
    try:
        value = pkgutil.resolve_name(text)
        value = value() if callable(value) and not isinstance(value, Callback) else value
    except Exception as e:
        raise OptionError(f"Callback {text!r} cannot be created ({type(e).__name__}: {e}). {form}") from e
    if not isinstance(value, Callback):
        raise OptionError(f"Callback {text!r} is an object of type {type(value).__name__}. {form}")
    return value
