"""Growth of time and memory with the size of a structure: file to graph, and forward pass of models."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import torch
from scipy.stats import linregress

from benchmarks.cost_table import CostTable, Row, show_rows
from benchmarks.large_structures import write_large_structure
from benchmarks.speed_featurize import FEATURES
from protgraph import Target, build_model
from protgraph.data.graph.protein_graph import collate
from protgraph.evaluation.evaluation import evaluation_mode
from protgraph.featurize.plan import FeaturePlan
from protgraph.process_memory import (
    memory_in_use,
    mmap_large_blocks,
    peak_memory,
    release_memory,
    reset_peak_memory,
)
from protgraph.structure import Residues, clean, load_structure

__all__ = ["ATTENTION", "MODELS", "PDB_SIZES", "SIZES", "exponent", "measure"]

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
PDB_SIZES = (1_000, 2_000, 4_000, 8_000)  # the format has at most 62 chains and 99 999 atoms
MODELS = ("gcn", "mpnn", "egnn", "gvp")
ATTENTION = "transformer"  # on the complete graph: time grows with the square by definition, memory must not
LARGEST_ATTENTION = 30_000
FORMATS = {".cif": "mmCIF", ".bcif": "BinaryCIF", ".pdb": "PDB"}


@dataclass(frozen=True)
class SizeCost:
    """Cost of one structure.

    Parameters
    ----------
    residues : int
    seconds : float or None
        CPU time of one thread, the median of several runs; None if only memory was measured.
    memory : float
        Peak above the process before the run, MiB.
    """

    residues: int
    seconds: float | None
    memory: float


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Measure structures of 10³ to 10⁵ residues, one thread, and print each row when it is measured.

    Each step runs in two processes of its own: one for time, about ``seconds`` for all sizes, one for memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = show_rows(_rows(Path(folder), seconds))
    return [
        CostTable(
            title=f"one structure of {SIZES[0]} to {SIZES[-1]} residues",
            columns=("step", "residues", "CPU s", "MiB", "exponent of time", "error", "exponent of memory", "error"),
            rows=rows,
            caption="Least-squares slope of log cost over log residues; 1 is linear. Error: standard error of the\n"
            "slope, from the distances of the sizes from the line. Seconds and MiB are of the largest structure.\n"
            "MiB: peak above the process before the step. PDB: the format ends at 99 999 atoms.\n"
            f"{ATTENTION}: attention between all residues, whose time is quadratic by definition.",
        )
    ]


def _rows(folder: Path, seconds: float) -> Iterator[Row]:
    files = {}
    for suffix in FORMATS:
        sizes = PDB_SIZES if suffix == ".pdb" else SIZES
        files[suffix] = [folder / f"{size}{suffix}" for size in sizes]
        for path in files[suffix]:
            write_large_structure(int(path.stem), path)
    for suffix, paths in files.items():
        yield _row(f"{FORMATS[suffix]} file → graph", _costs(_graph_runs, paths, seconds))
    structures = [clean(load_structure(path)) for path in files[".bcif"]]
    for model in MODELS:
        yield _row(f"forward of {model}", _costs(_forward_runs, structures, seconds, model))
    small = [structure for structure in structures if len(structure) < 1.2 * LARGEST_ATTENTION]
    yield _row(f"forward of {ATTENTION}", _costs(_forward_runs, small, None, ATTENTION))


def _row(name: str, costs: Sequence[SizeCost]) -> Row:
    largest = costs[-1]
    growth = (None, None) if largest.seconds is None else exponent(costs, lambda cost: cost.seconds)
    memory = exponent(costs, lambda cost: cost.memory)
    cells = [name, largest.residues, largest.seconds, largest.memory, *growth, *memory]
    return tuple(cells)


def exponent(costs: Sequence[SizeCost], value: Callable[[SizeCost], float]) -> tuple[float, float | None]:
    """Return the slope of log cost over log residues, and its standard error, None below three sizes."""
    sizes, values = [cost.residues for cost in costs], [max(value(cost), 1e-9) for cost in costs]
    line = linregress(np.log(sizes), np.log(values))
    return float(line.slope), float(line.stderr) if len(costs) > 2 else None


Runs = Callable[..., Iterator[Callable[[], int]]]


def _costs(runs: Runs, inputs: Sequence[Path | Residues], seconds: float | None, *options: str) -> list[SizeCost]:
    """Measure memory and time in a new process each: memory that was used before would hide that of a step."""
    residues, memory = zip(*_in_process(_memory, runs, inputs, *options), strict=True)
    times = [None] * len(inputs) if seconds is None else _in_process(_times, seconds, runs, inputs, *options)
    return [SizeCost(*cost) for cost in zip(residues, times, memory, strict=True)]


def _in_process(function: Callable[..., list], *arguments: object) -> list:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _memory(runs: Runs, inputs: Sequence[Path | Residues], *options: str) -> list[tuple[int, float]]:
    """Return the residues and the peak, MiB, of each input; the first one runs twice, since it loads code."""
    torch.set_num_threads(1)
    mmap_large_blocks()  # or small structures reuse memory of earlier ones, which is not counted
    cpu, peaks = torch.device("cpu"), []
    for run in runs([inputs[0], *inputs], *options):
        release_memory()
        before = memory_in_use(cpu)
        reset_peak_memory(cpu)
        peaks.append((run(), peak_memory(cpu) - before))
    return peaks[1:]


def _times(seconds: float, runs: Runs, inputs: Sequence[Path | Residues], *options: str) -> list[float]:
    """Return the median CPU time of each input, in at least two runs after one that is not counted."""
    torch.set_num_threads(1)
    medians = []
    for run in runs(inputs, *options):
        run()
        times: list[float] = []
        while len(times) < 2 or sum(times) < seconds / len(inputs):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
        medians.append(median(times))
    return medians


def _graph_runs(files: Sequence[Path]) -> Iterator[Callable[[], int]]:
    """Yield functions that read a file and compute its graph."""
    plan = FeaturePlan(FEATURES)
    for path in files:
        yield lambda path=path: plan.featurize(plan.precompute(clean(load_structure(path)))).num_nodes


def _forward_runs(structures: Sequence[Residues], model: str) -> Iterator[Callable[[], int]]:
    """Yield functions that apply a model to a structure."""
    network = build_model(model, Target("states", "node", "classification", 3), seed=0)
    with evaluation_mode(network):
        for residues in structures:
            batch = collate([network.plan.precompute(residues)])
            yield lambda batch=batch: len(network(batch)["logits"])
