"""Rate of ``protgraph train`` relative to the bare loop of the same model on the same batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median, quantiles

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


def _row(
    residues: int, bare: Sequence[EpochTimes], unclipped: Sequence[EpochTimes], command: Sequence[EpochTimes]
) -> tuple[float, ...]:
    """Return the rates and ratios of a row; epoch i of the command is between the bare epochs i and i + 1."""
    turns = [_turn(*one) for one in zip(pairwise(bare), pairwise(unclipped), command, strict=True)]
    bare_time, time_taken, ratio, *others = zip(*turns, strict=True)
    lower, _, upper = quantiles(ratio, n=4, method="inclusive")
    rates = (residues / median(bare_time), residues / median(time_taken))
    return (*rates, median(ratio), lower, upper, *map(median, others))


def _turn(
    bare: tuple[EpochTimes, EpochTimes], unclipped: tuple[EpochTimes, EpochTimes], epoch: EpochTimes
) -> tuple[float, ...]:
    """Return the seconds of training of a bare epoch and of the command, four ratios, and milliseconds per epoch.

    The bare epochs are those before and after the epoch of the command.
    """
    training, validation = mean(one.training for one in bare), mean(one.validation for one in (*bare, *unclipped))
    whole = epoch.training + epoch.validation
    took = whole - validation
    ratios = training / took, mean(one.training for one in unclipped) / took, training / whole
    return training, took, *ratios, training / epoch.training, 1e3 * (epoch.validation - validation)
