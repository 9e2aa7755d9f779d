"""Run a benchmark: models × tasks × seeds to rows, resuming a run that was stopped."""

from __future__ import annotations

import json
import os
import pkgutil
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol

from protgraph.argument_types import check_arguments
from protgraph.bench.job_plan import SESSION, plan_jobs
from protgraph.bench.rows import BenchJob, BenchRow, append_row, finished_rows
from protgraph.bench.spec import BenchSpec
from protgraph.bench.worker import TRAIN, perform, run_job
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["BenchCallback", "run_bench", "run_in_workers"]

#: glibc keeps freed memory for the next tensor instead of returning it to the system, which would clear it again.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class BenchCallback(Protocol):
    """Callbacks of a benchmark run, e.g. :class:`protgraph.bench.progress.ProgressBar`."""

    def start(self, jobs: Sequence[BenchJob], finished: Sequence[BenchRow], workers: int) -> None:
        """Run before the first job: ``jobs`` to do with ``workers`` processes, ``finished`` rows of an earlier run."""

    def add(self, row: BenchRow) -> None:
        """Run after each job."""

    def stop(self) -> None:
        """Run at the end, also after an interruption."""


@check_arguments("spec")
def run_bench(
    spec: BenchSpec, *, overwrite: bool = False, callback: BenchCallback | None = None, train: str = TRAIN
) -> list[BenchRow]:
    """Run the jobs of a spec that have no finished row yet; return all rows in the order of the spec.

    Each row is written to disk (``<folder>/rows.jsonl``) as soon as it is finished, so a run can be stopped at any
    time. Finished rows are recognized by everything that determines their numbers: the model spec, the code of its
    components, the dataset's version, task, seed and training options. Failed rows run again, and so do rows whose
    files of predictions are missing.

    Parameters
    ----------
    overwrite : bool
        Run all jobs again.
    callback : BenchCallback, optional
        Called before the first job, with every row, and at the end.
    train : str
        ``"module:function"``, a function from :class:`BenchJob` to :class:`BenchRow` for the worker processes.

    Returns
    -------
    list of BenchRow
        One per job; a failed one has ``error``.

    Notes
    -----
    Components that are registered in this process only (in a script or notebook) do not exist in worker processes; a
    spec with such a component runs in this process, one job after the other.
    """
    path, log = spec.folder / "rows.jsonl", spec.folder / "workers.log"
    jobs, broken = plan_jobs(spec)
    finished = {} if overwrite else finished_rows(path)
    remaining: list[BenchJob] = []
    rows: dict[str, BenchRow] = {}
    for job in jobs:
        if job.key in finished:
            rows[job.key] = finished[job.key]
        elif job.key not in broken:
            remaining.append(job)
    rows |= broken
    queue = _short_jobs_last(remaining)
    if _is_of_this_process(remaining):
        workers, results = 1, _run_here(queue, train)
    else:
        workers = _count_workers(spec, len(remaining))
        results = run_in_workers(queue, train, workers=workers, log=log)
    if callback:
        callback.start(remaining, list(rows.values()), workers)
    try:
        with closing(results):
            for row in results:
                append_row(path, row)
                rows[row.key] = row
                if callback:
                    callback.add(row)
    finally:
        if callback:
            callback.stop()
    return [rows[job.key] for job in jobs]


def _is_of_this_process(jobs: Sequence[BenchJob]) -> bool:
    """Return True if a job has a component that is registered in this process only."""
    sources = [source for job in jobs for source in job.sources.values()]
    return any(source.startswith(SESSION) for source in sources)


def _count_workers(spec: BenchSpec, jobs: int) -> int:
    """Return the number of processes for a number of jobs."""
    most = spec.jobs or os.cpu_count() or 1
    return min(most, max(jobs, 1))


def _short_jobs_last(jobs: Sequence[BenchJob]) -> list[BenchJob]:
    """Order jobs for the workers: the first seed as in the spec, then the others from the last model to the first.

    Specs list baselines and small models first. Reversed, they fill the time in which the last large model runs.
    """
    first = [job for job in jobs if job.seed == jobs[0].seed]
    return first + [job for job in reversed(jobs) if job.seed != jobs[0].seed]


def _run_here(jobs: Sequence[BenchJob], train: str) -> Generator[BenchRow]:
    """Run jobs in this process on one thread, as a worker does, so that numbers and timings are comparable."""
    import torch

    function, before = pkgutil.resolve_name(train), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for job in jobs:
            yield perform(job, function)
    finally:
        torch.set_num_threads(before)


def run_in_workers(jobs: Sequence[BenchJob], train: str, *, workers: int, log: Path) -> Generator[BenchRow]:
    """Yield the rows of jobs from worker processes as they finish; a job whose process dies gives a failed row."""
    workers = min(workers, max(len(jobs), 1))
    pool = WorkerPool(partial(run_job, train=train), workers=workers, log=log, retries=0, environment=_MEMORY)
    with closing(pool.run(jobs)) as results:
        for job, row in results:
            if isinstance(row, WorkerDied):
                yield BenchRow.failed(job, f"the worker process {row.reason}; see {log}")
            else:  # as read from the file of rows later
                yield BenchRow.from_dict(json.loads(row))
