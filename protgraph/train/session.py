"""State of the process during a training: random streams, warnings and interruption."""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from protgraph.errors import OptionError
from protgraph.train.config import FitConfig

if TYPE_CHECKING:
    from protgraph.train.result import FitResult

__all__ = [
    "TrainingInterrupted",
    "interruption_with",
    "is_first_process",
    "only_thread_that_trains",
    "quiet_lightning",
    "random_state",
    "reproducible",
    "set_random_state",
    "signal_of",
]

_TRAINING = threading.RLock()  # a callback may train in its turn, in the same thread


def is_first_process() -> bool:
    """Return True in the process that writes files and messages, False in the others of a distributed run."""
    from lightning.pytorch.utilities import rank_zero_only

    return rank_zero_only.rank == 0  # type: ignore[attr-defined]  # Lightning sets it on the function


@contextmanager
def only_thread_that_trains() -> Iterator[None]:
    """Raise :class:`OptionError` if another thread of this process trains: they would share torch's random numbers."""
    if not _TRAINING.acquire(blocking=False):
        raise OptionError(
            "fit: another thread of this process is training. All threads share the random numbers of torch, so that "
            "neither run could be repeated. Train one model after the other, or each in a process of its own, e.g. "
            "with 'protgraph bench --jobs 2'."
        )
    try:
        yield
    finally:
        _TRAINING.release()


@contextmanager
def reproducible(config: FitConfig, device: torch.device) -> Iterator[None]:
    """Seed torch and use deterministic operations, and restore both afterwards.

    Not Lightning's ``seed_everything`` and ``Trainer(deterministic=True)``: they change the state of the process for
    good (2.6, 2026-11-22).
    """
    is_gpu = device.type == "cuda"
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    with only_thread_that_trains(), torch.random.fork_rng(devices=[device] if is_gpu else []):
        torch.manual_seed(config.seed)
        try:
            if is_gpu and config.deterministic:
                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or cuBLAS raises
                torch.use_deterministic_algorithms(True)
                torch.backends.cudnn.benchmark = False
            yield
        finally:
            torch.use_deterministic_algorithms(before[0])
            torch.backends.cudnn.benchmark = before[1]


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Hide Lightning's messages of level INFO and its hints about options that are chosen on purpose."""
    log = logging.getLogger("lightning.pytorch")
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "GPU available but not used")  # the device is an option
            warnings.filterwarnings("ignore", "The number of training batches")  # it differs between epochs
            warnings.filterwarnings("ignore", "Checkpoint directory .* exists and is not empty")  # a resumed run
            warnings.filterwarnings("ignore", "Be aware that when using `ckpt_path`")  # without patience or time limit
            warnings.filterwarnings("ignore", "The `srun` command is available")  # one process needs none
            warnings.filterwarnings("ignore", "Found .* in eval mode")  # frozen parts
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)  # Lightning 2.6's use of torch's pytree
            yield
    finally:
        log.setLevel(before)


def random_state(generator: torch.Generator | None = None) -> dict[str, Any]:
    """Return the states of the random streams that a run seeds: torch, CUDA and a generator."""
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "generator": None if generator is None else generator.get_state(),
    }


def set_random_state(state: Mapping[str, Any], generator: torch.Generator | None = None) -> None:
    """Restore the states of :func:`random_state`."""
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"]:
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])
    if generator is not None and state["generator"] is not None:
        generator.set_state(state["generator"].cpu())


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C or SIGTERM.

    Attributes
    ----------
    signal : signal.Signals
        ``SIGINT`` or ``SIGTERM``.
    result : FitResult or None
        The model of the best epoch so far, without test metrics. None before the first validated epoch, and in all
        processes of a distributed run but the first.
    """

    def __init__(self, number: signal.Signals, result: FitResult | None = None) -> None:
        self.signal, self.result = number, result
        super().__init__(
            f"training interrupted by {number.name} before the first validated epoch"
            if result is None
            else f"training interrupted by {number.name} after epoch {result.epochs}; the model of epoch "
            f"{result.best_epoch} is the attribute 'result'"
        )


@contextmanager
def interruption_with(result: Callable[[signal.Signals], FitResult | None]) -> Iterator[None]:
    """Raise :class:`TrainingInterrupted` with ``result(signal)`` if the block is stopped by Ctrl-C or SIGTERM.

    Lightning 2.6 turns both into SystemExit, which ends the kernel of a notebook and the process with exit code 0 or
    1, and leaves SIGINT ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except TrainingInterrupted:
        raise
    except (KeyboardInterrupt, SystemExit) as e:
        number = signal_of(e)
        if number is None:
            raise
        for number_before, handler in before.items() if is_main else ():
            if handler is not None:  # None: not set from Python
                signal.signal(number_before, handler)
        raise TrainingInterrupted(number, result(number)) from e


def signal_of(e: BaseException | None) -> signal.Signals | None:
    """Return the signal that caused an exception, None for another exception."""
    from lightning.pytorch.utilities.exceptions import SIGTERMException

    if isinstance(e, SIGTERMException):
        return signal.SIGTERM
    if isinstance(e, KeyboardInterrupt):
        return getattr(e, "signal", signal.SIGINT)
    return signal_of(e.__context__) if isinstance(e, SystemExit) else None
