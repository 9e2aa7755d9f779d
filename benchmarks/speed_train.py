"""Rate of ``protgraph train`` relative to the bare loop of the same model on the same batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.cost_table import CostTable, show_rows
from benchmarks.training_loops import EpochTimes, TrainingLoops
from protgraph.train import FitConfig

__all__ = ["MODELS", "measure"]

MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "schnet", "transformer")
DATASET, TASK = "pdb_core", "secondary_structure"
EPOCHS, ROUNDS = 3, 3  # epochs of a run; the first one is not counted


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Train each model in turns with its bare loop, for about ``seconds`` per model and at least three turns."""
    config = FitConfig(epochs=EPOCHS, device="cpu", patience=None)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = show_rows((m, *_rates(TrainingLoops(m, DATASET, TASK, config), seconds)) for m in MODELS)
    finally:
        torch.set_num_threads(before)
    return [
        CostTable(
            title=f"training on {TASK} of {DATASET}, batches of {config.batch_residues} residues",
            columns=("model", "bare residues/s", "train residues/s", "train / bare", "with validation"),
            rows=rows,
            caption="CPU time of one thread. bare: forward, loss, backward, gradient clipping and optimizer, on\n"
            "batches in memory. train: the same with collation, validation, metrics, CSV logger, checkpoints of the\n"
            "best epoch and of the training state. train / bare: median over turns, without the forward passes of\n"
            "validation, at the time that the bare loop takes for them. with validation: nothing subtracted. The\n"
            "first epoch of a run is not counted.",
        )
    ]


def _rates(loops: TrainingLoops, seconds: float) -> tuple[float, float, float, float]:
    """Return both rates, and the fractions of the bare rate that the command keeps."""
    loops.bare()
    end, turns = time.perf_counter() + seconds, 0
    bare, kept, whole, rate = [], [], [], []
    while turns < ROUNDS or time.perf_counter() < end:
        before, epochs, after = loops.bare(), loops.command()[1:], loops.bare()
        training, validation = (_mean([before, after], part) for part in (_training, _validation))
        took = _mean(epochs, _training) + _mean(epochs, _validation)
        bare.append(loops.residues / training)
        rate.append(loops.residues / (took - validation))
        kept.append(training / (took - validation))
        whole.append(training / took)
        turns += 1
    return median(bare), median(rate), median(kept), median(whole)


def _mean(times: list[EpochTimes], part: Callable[[EpochTimes], float]) -> float:
    return sum(map(part, times)) / len(times)


def _training(times: EpochTimes) -> float:
    return times.training


def _validation(times: EpochTimes) -> float:
    return times.validation
