"""Models × tasks × seeds → rows; a run that was stopped goes on where it was."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Protocol

from protgraph.bench.plan import SESSION, plan_jobs
from protgraph.bench.rows import BenchJob, BenchRow, append_row, read_rows
from protgraph.bench.spec import BenchSpec
from protgraph.bench.worker import TRAIN, perform
from protgraph.bench.worker_pool import run_in_processes

__all__ = ["BenchCallback", "run_bench"]


class BenchCallback(Protocol):
    """What is told how a benchmark goes; :class:`protgraph.bench.progress.ProgressBar` shows it."""

    def start(self, jobs: Sequence[BenchJob], finished: Sequence[BenchRow], workers: int) -> None:
        """``jobs`` are to run on ``workers`` processes; ``finished`` are kept from an earlier run."""

    def add(self, row: BenchRow) -> None:
        """One more job is done."""

    def stop(self) -> None:
        """All jobs are done, or the run was interrupted."""


def run_bench(spec: BenchSpec, *, fresh: bool = False, watch: BenchCallback | None = None, train: str = TRAIN) -> list[BenchRow]:
    """Run what a spec asks for and is not there yet; returns its rows in the order of the spec.

    Every row is on the disk (``<folder>/rows.jsonl``) as soon as it is there, so a run may be stopped at any moment.
    Rows are recognized by all that decides their numbers: the model graph, the code of its components, the dataset's
    version, task, seed and training options. A failed row runs again.

    Parameters
    ----------
    spec : BenchSpec
    fresh : bool
        Run everything again.
    watch : BenchCallback, optional
        Is told of every row.
    train : str
        ``"module:function"`` that turns a :class:`BenchJob` into a :class:`BenchRow` in the worker.

    Returns
    -------
    list of BenchRow
        One a job; a failure is a row with ``error``.

    Notes
    -----
    Components that exist in this process only (registered in a script or notebook) cannot reach worker processes;
    a spec that names one runs here, one job after the other.
    """
    path, log = spec.folder / "rows.jsonl", spec.folder / "workers.log"
    jobs, broken = plan_jobs(spec)
    known = {} if fresh else {key: row for key, row in read_rows(path).items() if not row.error}
    left = [job for job in jobs if job.key not in known and job.key not in broken]
    rows = {job.key: known[job.key] for job in jobs if job.key in known} | broken
    here = any(source.startswith(SESSION) for job in left for source in job.sources.values())
    workers = 1 if here else min(spec.jobs or os.cpu_count() or 1, max(len(left), 1))
    if watch:
        watch.start(left, list(rows.values()), workers)
    made = _run_here(left, train) if here else run_in_processes(left, train, workers=workers, log=log)
    try:
        with closing(made):
            for row in made:
                append_row(path, row)
                rows[row.key] = row
                if watch:
                    watch.add(row)
    finally:
        if watch:
            watch.stop()
    return [rows[job.key] for job in jobs]


def _run_here(jobs: Sequence[BenchJob], train: str) -> Generator[BenchRow]:
    """In this process, on one thread as in a worker: so that numbers and speeds are the same."""
    import torch

    function, before = pkgutil.resolve_name(train), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for job in jobs:
            yield perform(job, function)
    finally:
        torch.set_num_threads(before)
