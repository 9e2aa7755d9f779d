"""Estimates before a run beside the run itself: training, a memory limit, and preparation."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cost_table import CostTable, show_rows
from benchmarks.synthetic_inputs import machine
from protgraph.featurize import FeaturePlan
from protgraph.prepare import estimate_store, prepare_store
from protgraph.registry.component import component
from protgraph.train import FitConfig, choose_batch_residues, estimate_resources, fit
from protgraph.train.resource_estimate import step_clock

__all__ = ["measure"]

DATASET, TASK = "pdb_core", "secondary_structure"
MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "transformer", "tfn")
CONFIG = FitConfig(epochs=3, batch_residues=2048)
LIMITED, LIMITS = "egnn", (1400.0, 2000.0)  # MiB
STRUCTURES = Path(__file__).parents[1] / "datasets" / "pdb_core" / "structures"
FEATURES, COPIES, SAMPLE = ("dihedral", component("knn", k=30)), 4, 200
JOBS = (1, 2)


def measure(*, seconds: float = 5.0, device: str = "cpu") -> list[CostTable]:
    """Compare estimates with runs, each in a process of its own; ``seconds`` has no effect.

    On a GPU: without limits of memory, and without preparation.
    """
    return [_training(device)] if device != "cpu" else [_training(device), _limits(), _preparation()]


def _training(device: str) -> CostTable:
    """Return memory and time of an epoch by ``train --dry-run`` and in the run, by model."""
    config = replace(CONFIG, device=device)

    def rows() -> Iterator[tuple[str | float, ...]]:
        for model in MODELS:
            memory, epoch = _in_process(_estimate, model, config)
            peak, actual = _in_process(_run, model, config)
            yield model, memory, peak, memory / peak, epoch, actual, epoch / actual

    return CostTable(
        title=f"train MODEL --data {DATASET} --task {TASK} --batch-residues {CONFIG.batch_residues} "
        f"on {machine(device)}",
        columns=("model", "MiB, --dry-run", "run", "ratio", "s per epoch, --dry-run", "run", "ratio"),
        rows=show_rows(rows()),
        caption=f"{_costs_of(device)} {_load()}",
    )


def _costs_of(device: str) -> str:
    """Return what is measured, for the caption."""
    if device == "cpu":
        return (
            "Peak memory of the process; median time of an epoch, with validation and metrics: CPU time with one\n"
            "thread."
        )
    return "Peak memory of tensors on the GPU; median time of an epoch, with validation and metrics."


def _limits() -> CostTable:
    """Return the peak memory of runs with ``--batch-residues auto``, by limit."""

    def rows() -> Iterator[tuple[str | float, ...]]:
        for limit in LIMITS:
            chosen, memory = _in_process(_choose, LIMITED, limit)
            peak, _ = _in_process(_run, LIMITED, replace(CONFIG, batch_residues=chosen, device="cpu"))
            yield f"{limit:.0f} MiB", chosen, memory, peak, peak / limit

    return CostTable(
        title=f"train {LIMITED} --data {DATASET} --task {TASK} --batch-residues auto --memory-limit LIMIT",
        columns=("limit", "residues per batch", "MiB, predicted", "run", "run / limit"),
        rows=show_rows(rows()),
        caption="A run is within its limit if the last column is at most 1.",
    )


def _preparation() -> CostTable:
    """Return time, residues and bytes by ``featurize --dry-run`` and of the run, by number of processes."""

    def rows() -> Iterator[tuple[str | float, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            files = _copies(Path(folder) / "files")
            for jobs in JOBS:
                found = _in_process(_estimate_preparation, files, jobs)
                real = _in_process(_prepare, files, Path(folder) / f"store{jobs}", jobs)
                ratios = [value / actual for value, actual in zip(found, real, strict=True)]
                yield f"--jobs {jobs}", found[0], real[0], *ratios

    return CostTable(
        title=f"featurize of {COPIES * len(list(STRUCTURES.iterdir()))} BinaryCIF files, dihedral and 30 neighbors",
        columns=("processes", "s, --dry-run", "run", "ratio", "residues, ratio", "bytes, ratio"),
        rows=show_rows(rows()),
        caption=f"The dry run measures {SAMPLE} files.\n{_load()}",
    )


def _load() -> str:
    """Return the load of the machine, which changes times: other work in one of two runs is in their ratio."""
    return f"Load of the machine at the end: {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} cores."


def _in_process(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a new process: memory that an earlier run freed would be used again."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _estimate(model: str, config: FitConfig) -> tuple[float, float]:
    cost = estimate_resources(model, DATASET, TASK, config=config).cost
    return cost.memory, cost.seconds


def _choose(model: str, limit: float) -> tuple[int, float]:
    found = choose_batch_residues(model, DATASET, TASK, config=replace(CONFIG, device="cpu"), memory_limit=limit)
    return found.chosen, found.cost.memory


def _run(model: str, config: FitConfig) -> tuple[float, float]:
    """Return the peak memory, MiB, and the median time of an epoch after the first one, seconds."""
    ends: list[float] = []
    clock = step_clock(config.torch_device())
    result = fit(model, DATASET, TASK, config=config, on_epoch=lambda row: ends.append(clock()))
    return result.peak_memory, median(b - a for a, b in pairwise(ends))


def _copies(folder: Path) -> Path:
    """Copy the structures several times, as different files."""
    folder.mkdir()
    for number in range(COPIES):
        for path in sorted(STRUCTURES.iterdir()):
            shutil.copyfile(path, folder / f"{number}_{path.name}")
    return folder


def _estimate_preparation(files: Path, jobs: int) -> tuple[float, float, float]:
    found = estimate_store(files, FeaturePlan(list(FEATURES)), jobs=jobs, sample=SAMPLE)
    return found.seconds, found.residues, found.bytes


def _prepare(files: Path, out: Path, jobs: int) -> tuple[float, float, float]:
    begin = time.perf_counter()
    prepared = prepare_store(files, out, FeaturePlan(list(FEATURES)), jobs=jobs)
    return time.perf_counter() - begin, prepared.total("residues"), prepared.total("bytes")
