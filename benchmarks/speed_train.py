"""Rate of ``protgraph train`` relative to the bare loop of the same model on the same batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise, starmap
from statistics import mean, median, quantiles
from typing import NamedTuple

import torch

from benchmarks.cost_table import CostTable, show_rows
from benchmarks.synthetic_inputs import machine
from benchmarks.training_loops import EpochTimes, TrainingLoops
from protgraph.train import FitConfig

__all__ = ["MODELS", "measure"]

MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "schnet", "transformer")
DATASET, TASK = "pdb_core", "secondary_structure"
COPIES = 6  # of each training protein, in a second row of the first model
WARM_UP, FEWEST = 1, 5  # epochs that are not counted, and that are


def measure(*, seconds: float = 5.0, device: str = "cpu") -> list[CostTable]:
    """Train each model with epochs of its bare loop between its epochs, for about ``seconds`` per model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        runs = [(MODELS[0], 1), (MODELS[0], COPIES), *((model, 1) for model in MODELS[1:])]
        rows = show_rows((model, *_rates(model, copies, seconds, device)) for model, copies in runs)
    finally:
        torch.set_num_threads(before)
    return [
        CostTable(
            title=f"training on {TASK} of {DATASET}, batches of {_config(1, device).batch_residues} "
            f"residues, {machine(device)}",
            columns=(
                "model",
                "residues per epoch",
                "bare residues/s",
                "train residues/s",
                "train / bare",
                "lower quartile",
                "upper quartile",
                "train / without clipping",
                "with validation",
                "steps alone",
                "ms per epoch",
            ),
            rows=rows,
            caption=f"{_time_of(device)} bare: forward, loss, backward, gradient clipping and optimizer, on\n"
            "batches in memory, without collation; without clipping: the same loop without this step. train: with\n"
            "clipping, collation, validation, metrics, CSV logger, checkpoints of the best epoch and of the training\n"
            "state. An epoch of each bare loop runs before and after each epoch of train; ratios are medians over\n"
            "epochs, with the quartiles of the first. train / bare, train / without clipping: without the forward\n"
            "passes of validation, at the time that the bare loop takes for them. with validation: nothing\n"
            "subtracted. steps alone: train / bare until the last step of an epoch. ms per epoch: what follows it,\n"
            "without the forward passes of validation; it does not depend on the number of training residues. The\n"
            f"second row has each training protein {COPIES} times.",
        )
    ]


def _time_of(device: str) -> str:
    """Return what is measured, for the caption."""
    return "CPU time of one thread." if device == "cpu" else "Time until the GPU is done; one thread of the CPU."


def _config(epochs: int, device: str) -> FitConfig:
    return FitConfig(epochs=epochs, device=device, patience=None)


def _rates(model: str, copies: int, seconds: float, device: str) -> tuple[float, ...]:
    """Return the values of a row after the model, with each training protein ``copies`` times."""
    loops = TrainingLoops(model, DATASET, TASK, _config(1, device), copies=copies)
    loops.bare()
    start = time.perf_counter()
    loops.bare()
    epochs = max(FEWEST, round(seconds / (3 * (time.perf_counter() - start)))) + WARM_UP
    loops = TrainingLoops(model, DATASET, TASK, _config(epochs, device), copies=copies)
    pairs: list[tuple[EpochTimes, EpochTimes]] = []
    command = loops.command(lambda: pairs.append((loops.bare(clip=False), loops.bare())))[WARM_UP:]
    unclipped, bare = zip(*pairs[WARM_UP:], strict=True)
    return loops.residues, *_row(loops.residues, bare, unclipped, command)


class _Turn(NamedTuple):
    """An epoch of the command beside the bare epochs before and after it."""

    bare: float  # s of training
    command: float  # s without validation
    ratio: float  # rate of the command by that of the bare loop; of the next three, too
    ratio_to_unclipped: float
    ratio_with_validation: float
    ratio_of_training: float
    validation: float  # ms of the command beyond those of the bare loop


def _row(
    residues: int, bare: Sequence[EpochTimes], unclipped: Sequence[EpochTimes], command: Sequence[EpochTimes]
) -> tuple[float, ...]:
    """Return the rates and ratios of a row; epoch i of the command is between the bare epochs i and i + 1."""
    epochs = zip(pairwise(bare), pairwise(unclipped), command, strict=True)
    turns = _Turn(*zip(*starmap(_turn, epochs), strict=True))  # a tuple of all turns in each field
    lower, _, upper = quantiles(turns.ratio, n=4, method="inclusive")
    rates = (residues / median(turns.bare), residues / median(turns.command))
    ratio = (median(turns.ratio), lower, upper)
    return rates + ratio + tuple(median(values) for values in turns[3:])


def _turn(bare: tuple[EpochTimes, EpochTimes], unclipped: tuple[EpochTimes, EpochTimes], epoch: EpochTimes) -> _Turn:
    training = mean(loop.training for loop in bare)
    training_unclipped = mean(loop.training for loop in unclipped)
    validation = mean(loop.validation for loop in (*bare, *unclipped))
    total = epoch.training + epoch.validation
    command = total - validation
    return _Turn(
        bare=training,
        command=command,
        ratio=training / command,
        ratio_to_unclipped=training_unclipped / command,
        ratio_with_validation=training / total,
        ratio_of_training=training / epoch.training,
        validation=1e3 * (epoch.validation - validation),
    )
