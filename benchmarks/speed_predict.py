"""Duration of ``protgraph predict NAME FILE``, process start included, for each trained model of the package."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost_table import CostTable, show_rows
from protgraph import datasets, trained_models
from protgraph.structure import clean, load_structure

__all__ = ["measure"]

ENTRY = "7rin"  # of pdb_core: 298 residues
_IMPORT = "import torch"
_REFUSE_IT = ("paratope",)  # the entry has no antibody


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Measure wall-clock and processor time of whole processes in turns, for about ``seconds`` per row."""
    (file,) = {e.path for e in datasets.create("pdb_core").examples("b_factor") if e.path.stem == ENTRY}
    residues = len(clean(load_structure(file)))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.csv")
        prefix = [sys.executable, "-m", "protgraph", "predict"]
        ways = {_IMPORT: [sys.executable, "-c", _IMPORT]}
        for name in trained_models.names():
            if name not in _REFUSE_IT:
                ways[name] = [*prefix, name, str(file), "-o", str(out), "--overwrite", "--device", "cpu"]
        for command in ways.values():
            _run(command)  # compiles modules to bytecode
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        end = time.perf_counter() + seconds * len(ways)
        while not times[_IMPORT] or time.perf_counter() < end:
            for name, command in ways.items():
                times[name].append(_run(command))
    rows = show_rows(_row(name, runs) for name, runs in times.items())
    title = f"protgraph predict NAME FILE: {residues} residues, process start included, {os.cpu_count()} cores"
    caption = "wall s: from start to end of the process; CPU s: of all its threads. Medians, measured in turns.\n"
    caption += f"Not measured, because they refuse proteins of this kind: {', '.join(_REFUSE_IT)}."
    return [CostTable(title, ("model", "wall s", "CPU s"), rows, caption)]


def _row(name: str, runs: Sequence[tuple[float, float]]) -> tuple[str, float, float]:
    """Return a model and the medians of its wall-clock and processor times."""
    wall_times, processor_times = zip(*runs, strict=True)
    return name, statistics.median(wall_times), statistics.median(processor_times)


def _run(command: Sequence[str]) -> tuple[float, float]:
    """Return wall-clock and processor time of a process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return end - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
