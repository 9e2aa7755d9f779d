"""Pool of worker processes for a benchmark; a process that dies loses only its current job.

Not concurrent.futures (Python 3.11.7, 2026-11-22) and not loky (3.7.0, 2026-11-22): after one worker is killed, e.g.
out of memory, every pending job fails too (``BrokenProcessPool``, ``TerminatedWorkerError``; 4 of 5 jobs in a test).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

from protgraph.bench.rows import BenchJob, BenchRow

__all__ = ["Worker", "WorkerPool"]

#: One thread per worker, so that as many workers as cores do not compete for cores.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
#: glibc keeps freed memory for the next tensor instead of returning it to the system, which would clear it again.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class Worker:
    """Worker process, started with its first job and restarted after it died.

    Parameters
    ----------
    train : str
        ``"module:function"``, a function from :class:`BenchJob` to :class:`BenchRow`.
    log : file
        Receives everything that the worker prints.
    """

    def __init__(self, train: str, log: IO[bytes]) -> None:
        self.train, self.log = train, log
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def run(self, job: BenchJob) -> BenchRow:
        """Run one job; if the process dies, return a failed row with its exit status."""
        process = self._start()
        try:
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):  # the process is dead, or close() closed its pipes
            line = ""
        if line:
            return BenchRow.from_dict(json.loads(line))
        return BenchRow.failed(job, f"the worker process {_exit_text(process.wait())}; see {self.log.name}")

    def close(self) -> None:
        """Kill the process; the worker accepts no more jobs."""
        with self._lock:
            self._closed = True
            self._end()

    def _start(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the benchmark was stopped")
            if self._process is not None and self._process.poll() is not None:
                self._end()
            if self._process is None:
                path = os.pathsep.join(p or os.getcwd() for p in sys.path)
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        f"from protgraph.bench.worker import run_worker; run_worker({self.train!r})",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self.log,
                    encoding="utf-8",
                    env=_MEMORY | os.environ | _THREADS | {"PYTHONPATH": path},
                )
            return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # closing flushes what the dead process did not read
                pipe.close()
        self._process = None


def _exit_text(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


class WorkerPool:
    """Pool of :class:`Worker` processes that share the jobs of one benchmark.

    Parameters
    ----------
    train : str
        ``"module:function"``, a function from :class:`BenchJob` to :class:`BenchRow`.
    workers : int
        Number of processes.
    log : Path
        Everything that the workers print is appended to this file.
    """

    def __init__(self, train: str, *, workers: int, log: Path) -> None:
        self.train, self.workers, self.log = train, workers, log

    def run(self, jobs: Sequence[BenchJob]) -> Generator[BenchRow]:
        """Yield rows as they finish; jobs start in the given order. Closing the generator kills the processes."""
        pending: queue.SimpleQueue[BenchJob] = queue.SimpleQueue()
        finished: queue.SimpleQueue[BenchRow] = queue.SimpleQueue()
        for job in jobs:
            pending.put(job)
        stopped = threading.Event()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as file:
            pool = [Worker(self.train, file) for _ in range(min(self.workers, len(jobs)))]
            threads = [
                threading.Thread(target=_serve, args=(worker, pending, finished, stopped), daemon=True)
                for worker in pool
            ]
            try:
                for thread in threads:
                    thread.start()
                for _ in jobs:
                    yield finished.get()
            finally:
                stopped.set()
                for worker in pool:
                    worker.close()
                for thread in threads:
                    thread.join()


def _serve(
    worker: Worker,
    pending: queue.SimpleQueue[BenchJob],
    finished: queue.SimpleQueue[BenchRow],
    stopped: threading.Event,
) -> None:
    """Run pending jobs on one worker until there are none."""
    while not stopped.is_set():
        try:
            job = pending.get_nowait()
        except queue.Empty:
            return
        try:
            row = worker.run(job)
        except Exception as e:  # noqa: BLE001 -- any error becomes a failed row; the other jobs continue
            row = BenchRow.failed(job, f"{type(e).__name__}: {e}")
        finished.put(row)
