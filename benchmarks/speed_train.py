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
            columns=(
                "model",
                "bare residues/s",
                "without clipping",
                "train residues/s",
                "train / bare",
                "train / without clipping",
                "with validation",
            ),
            rows=rows,
            caption="CPU time of one thread. bare: forward, loss, backward, gradient clipping and optimizer, on\n"
            "batches in memory; without clipping: the rate of the same loop without this step. train: with clipping,\n"
            "collation, validation, metrics, CSV logger, checkpoints of the best epoch and of the training state.\n"
            "train / bare, train / without clipping: medians over turns, without the forward passes of validation, at\n"
            "the time that the bare loop takes for them. with validation: train / bare, nothing subtracted. The first\n"
            "epoch of a run is not counted.",
        )
    ]


def _rates(loops: TrainingLoops, seconds: float) -> tuple[float, ...]:
    """Return the values of a row after the model: three rates, and three fractions that the command keeps."""
    loops.bare()
    end = time.perf_counter() + seconds
    turns_of_columns: list[tuple[float, ...]] = []
    while len(turns_of_columns) < ROUNDS or time.perf_counter() < end:
        unclipped, before, epochs, after = loops.bare(clip=False), loops.bare(), loops.command()[1:], loops.bare()
        training, validation = (_mean([before, after], part) for part in (_training, _validation))
        whole = _mean(epochs, _training) + _mean(epochs, _validation)
        took = whole - validation
        rates = [loops.residues / one for one in (training, unclipped.training, took)]
        turns_of_columns.append((*rates, training / took, unclipped.training / took, training / whole))
    return tuple(map(median, zip(*turns_of_columns, strict=True)))


def _mean(times: list[EpochTimes], part: Callable[[EpochTimes], float]) -> float:
    return sum(map(part, times)) / len(times)


def _training(times: EpochTimes) -> float:
    return times.training


def _validation(times: EpochTimes) -> float:
    return times.validation
