"""Growth of time and memory with the size of a structure: file to graph, and forward pass of models."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from benchmarks.cost_table import CostTable
from benchmarks.large_structures import write_large_structure
from benchmarks.speed_featurize import FEATURES
from protgraph import Target, build_model
from protgraph.data.graph.protein_graph import collate
from protgraph.featurize.plan import FeaturePlan
from protgraph.process_memory import (
    memory_in_use,
    mmap_large_blocks,
    peak_memory,
    release_memory,
    reset_peak_memory,
)
from protgraph.structure import clean, load_structure
from protgraph.train.evaluate import evaluation_mode

__all__ = ["ATTENTION", "MODELS", "SIZES", "measure"]

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "schnet", "gearnet", "tfn", "mace", "se3_transformer", "proteinmpnn")
ATTENTION = ("transformer",)  # on the complete graph: time grows with the square by definition
LARGEST_ATTENTION = 30_000
FORMATS = {".cif": "mmCIF", ".bcif": "BinaryCIF"}


@dataclass(frozen=True)
class SizeCost:
    """Cost of one structure.

    Parameters
    ----------
    residues : int
    seconds : float
        CPU time of one thread, the smallest of several runs.
    memory : float
        Peak above the process before the run, MiB.
    """

    residues: int
    seconds: float
    memory: float


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Measure structures of 10³ to 10⁵ residues, every step in a process of its own, one thread.

    Small structures are repeated for about ``seconds``.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {suffix: [Path(folder) / f"{size}{suffix}" for size in SIZES] for suffix in FORMATS}
        for paths in files.values():
            for size, path in zip(SIZES, paths, strict=True):
                write_large_structure(size, path)
        rows = [
            _row(f"{FORMATS[suffix]} file → graph", _in_process(_graph_costs, paths, seconds))
            for suffix, paths in files.items()
        ]
        small = [path for size, path in zip(SIZES, files[".bcif"], strict=True) if size <= LARGEST_ATTENTION]
        rows += [_row(f"forward of {m}", _in_process(_forward_costs, files[".bcif"], seconds, m)) for m in MODELS]
        rows += [_row(f"forward of {m} (N²)", _in_process(_forward_costs, small, seconds, m)) for m in ATTENTION]
    return [
        CostTable(
            title=f"one structure of {SIZES[0]} to {SIZES[-1]} residues",
            columns=("step", "residues", "CPU s", "MiB", "exponent of time", "exponent of memory"),
            rows=tuple(rows),
            caption="Least-squares slope of log cost over log residues; 1 is linear. Seconds and MiB are of the\n"
            "largest structure. MiB: peak above the process before the step. (N²): attention between all residues.",
        )
    ]


def _in_process(function: Callable[..., list[SizeCost]], *arguments: object) -> list[SizeCost]:
    """Run a function in a new process: memory that was used before would hide that of a step."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _row(name: str, costs: Sequence[SizeCost]) -> tuple[str | float | None, ...]:
    largest = costs[-1]
    exponents = (exponent(costs, lambda cost: cost.seconds), exponent(costs, lambda cost: cost.memory))
    return name, largest.residues, largest.seconds, largest.memory, *exponents


def exponent(costs: Sequence[SizeCost], value: Callable[[SizeCost], float]) -> float:
    """Return the slope of log cost over log residues."""
    sizes, values = [cost.residues for cost in costs], [max(value(cost), 1e-9) for cost in costs]
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _graph_costs(files: Sequence[Path], seconds: float) -> list[SizeCost]:
    plan = FeaturePlan(FEATURES)

    def run(path: Path) -> int:
        return plan.featurize(plan.precompute(clean(load_structure(path)))).num_nodes

    run(files[0])
    return [_cost(lambda path=path: run(path), seconds) for path in files]


def _forward_costs(files: Sequence[Path], seconds: float, model: str) -> list[SizeCost]:
    network = build_model(model, Target("states", "node", "classification", 3), seed=0)
    costs = []
    with evaluation_mode(network):
        for path in (files[0], *files):
            batch = collate([network.plan.precompute(clean(load_structure(path)))])
            costs.append(_cost(lambda batch=batch: len(network(batch)["logits"]), seconds))
    return costs[1:]  # the first one loads code


def _cost(run: Callable[[], int], seconds: float) -> SizeCost:
    """Measure memory in the first run, and time in this one and as many others as fit in ``seconds``."""
    torch.set_num_threads(1)
    mmap_large_blocks()  # or small structures reuse memory of earlier ones, which is not counted
    cpu = torch.device("cpu")
    release_memory()
    before = memory_in_use(cpu)
    reset_peak_memory(cpu)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.process_time()
        residues = run()
        times.append(time.process_time() - start)
        if len(times) == 1:
            memory = peak_memory(cpu) - before
    return SizeCost(residues, min(times), memory)
