"""State of the process during a run: random streams, deterministic operations and console messages."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from protgraph.errors import OptionError
from protgraph.train.config import FitConfig

__all__ = [
    "is_first_process",
    "only_thread_that_trains",
    "quiet_lightning",
    "random_state",
    "reproducible",
    "set_random_state",
]

_TRAINING = threading.RLock()  # a callback may train in its turn, in the same thread


def is_first_process() -> bool:
    """Return True in the process that writes files and messages, False in the others of a distributed run."""
    from lightning.pytorch.utilities import rank_zero_only

    return rank_zero_only.rank == 0


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
