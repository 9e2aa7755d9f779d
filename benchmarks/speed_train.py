"""Rate of ``protgraph train`` relative to the bare loop of the same model on the same batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from benchmarks.cost_table import CostTable
from benchmarks.synthetic_inputs import threads
from benchmarks.training_loops import EpochTimes, TrainingLoops
from protgraph.train import FitConfig

__all__ = ["MODELS", "measure"]

MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "schnet", "transformer")
DATASET, TASK = "pdb_core", "secondary_structure"
EPOCHS, ROUNDS = 2, 3


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Train each model in turns with its bare loop, for about ``seconds`` per model and at least three turns."""
    config = FitConfig(epochs=EPOCHS, device="cpu", patience=None)
    rows = tuple((model, *_rates(TrainingLoops(model, DATASET, TASK, config), seconds)) for model in MODELS)
    return [
        CostTable(
            title=f"training on {TASK} of {DATASET}, batches of {config.batch_residues} residues, {threads()}",
            columns=("model", "bare residues/s", "train residues/s", "train / bare", "with validation"),
            rows=rows,
            caption="bare: forward, loss, backward and optimizer on batches in memory.\n"
            "train: collation, the same, gradient clipping, validation metrics, CSV logger, checkpoint and training\n"
            "state; the forward passes of validation are subtracted, as the bare loop takes for them.\n"
            "train / bare: median over turns. with validation: the same, nothing subtracted.",
        )
    ]


def _rates(loops: TrainingLoops, seconds: float) -> tuple[float, float, float, float]:
    """Return both rates, and the fractions of the bare rate that the command keeps."""
    loops.bare()
    end, turns = time.perf_counter() + seconds, 0
    bare, kept, whole, rate = [], [], [], []
    while turns < ROUNDS or time.perf_counter() < end:
        before, epochs, after = loops.bare(), loops.command(), loops.bare()
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
