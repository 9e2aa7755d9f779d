"""Models × tasks × seeds → rows; a run that was stopped goes on where it was."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from protgraph.bench.lanes import run_in_processes
from protgraph.bench.plan import SESSION, plan_jobs
from protgraph.bench.rows import Job, Row, append_row, read_rows
from protgraph.bench.spec import BenchSpec
from protgraph.bench.worker import TRAIN, perform

__all__ = ["Watch", "run_bench"]


class Watch(Protocol):
    """What is told how a benchmark goes; :class:`protgraph.bench.progress.ProgressBar` shows it."""

    def start(self, jobs: Sequence[Job], finished: Sequence[Row], workers: int) -> None:
        """``jobs`` are to run on ``workers`` processes; ``finished`` are kept from an earlier run."""

    def add(self, row: Row) -> None:
        """One more job is done."""

    def stop(self) -> None:
        """All jobs are done, or the run was interrupted."""


def run_bench(spec: BenchSpec, *, fresh: bool = False, watch: Watch | None = None, train: str = TRAIN) -> list[Row]:
    """Run what a spec asks for and is not there yet; returns its rows in the order of the spec.

    Every finished row is on the disk (``<folder>/rows.jsonl``) before the next job starts in its place, so a run
    may be stopped at any moment. Rows are recognised by all that decides their numbers: the model graph, the code of
    its components, the dataset's version, task, seed and training options. A failed row runs again.

    Parameters
    ----------
    spec : BenchSpec
    fresh : bool
        Run everything again.
    watch : Watch, optional
        Is told of every row.
    train : str
        ``"module:function"`` that turns a :class:`Job` into a :class:`Row` in the worker.

    Returns
    -------
    list of Row
        One a job; a failure is a row with ``error``.

    Notes
    -----
    Components that exist in this process only (registered in a script or notebook) cannot reach worker processes;
    a spec that names one runs here, one job after the other.
    """
    path = spec.folder / "rows.jsonl"
    jobs, broken = plan_jobs(spec)
    known = {} if fresh else {key: row for key, row in read_rows(path).items() if not row.error}
    left = [job for job in jobs if job.key not in known and job.key not in broken]
    rows = {job.key: known[job.key] for job in jobs if job.key in known} | broken
    workers = min(spec.jobs or os.cpu_count() or 1, max(len(left), 1))
    if watch:
        watch.start(left, list(rows.values()), workers)
    try:
        for row in _run(left, train, workers, spec.folder / "workers.log"):
            append_row(path, row)
            rows[row.key] = row
            if watch:
                watch.add(row)
    finally:
        if watch:
            watch.stop()
    return [rows[job.key] for job in jobs]


def _run(jobs: Sequence[Job], train: str, workers: int, log: Path) -> Iterator[Row]:
    if any(source.startswith(SESSION) for job in jobs for source in job.sources.values()):
        function = pkgutil.resolve_name(train)
        return (perform(job, function) for job in jobs)
    return run_in_processes(jobs, train, workers=workers, log=log)
