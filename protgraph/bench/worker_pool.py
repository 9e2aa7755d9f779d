"""Worker processes for a benchmark: jobs in, rows out, and a process that dies costs only its own job."""

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

__all__ = ["Worker", "run_in_processes"]

#: One thread a worker: as many workers as cores then share the machine without getting in each other's way.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Worker:
    """One warm worker process, started with its first job and again after it died.

    Parameters
    ----------
    train : str
        ``"module:function"``, what does one job.
    log : file
        Where everything that the worker prints goes.
    """

    def __init__(self, train: str, log: IO[bytes]) -> None:
        self.train, self.log = train, log
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def run(self, job: BenchJob) -> BenchRow:
        """The row of one job; a worker that dies gives a failed row with its exit status."""
        process = self._start()
        try:
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):  # it is dead; or close() took its pipes away
            line = ""
        if line:
            return BenchRow.from_dict(json.loads(line))
        return BenchRow.failed(job, f"the worker process {_fate(process.wait())}; see {self.log.name}")

    def close(self) -> None:
        """End the process, whatever it is doing; the lane runs nothing more."""
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
                    [sys.executable, "-c", f"from protgraph.bench.worker import main; main({self.train!r})"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self.log,
                    encoding="utf-8",
                    env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": path},
                )
            return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # closing flushes what the dead process never read
                pipe.close()
        self._process = None


def _fate(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def run_in_processes(jobs: Sequence[BenchJob], train: str, *, workers: int, log: Path) -> Generator[BenchRow]:
    """Rows as they finish; jobs start in the order given.

    Parameters
    ----------
    jobs : sequence of BenchJob
    train : str
        ``"module:function"``, what does one job.
    workers : int
        How many processes.
    log : Path
        Everything that the workers print is added to this file.
    """
    waiting: queue.SimpleQueue[BenchJob] = queue.SimpleQueue()
    done: queue.SimpleQueue[BenchRow] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    stopped = threading.Event()

    def work(lane: Worker) -> None:
        while not stopped.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                row = lane.run(job)
            except Exception as e:  # noqa: BLE001 -- whatever it is, the others go on and the row says so
                row = BenchRow.failed(job, f"{type(e).__name__}: {e}")
            done.put(row)

    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        lanes = [Worker(train, file) for _ in range(min(workers, len(jobs)))]
        threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in lanes]
        try:
            for thread in threads:
                thread.start()
            for _ in jobs:
                yield done.get()
        finally:
            stopped.set()
            for lane in lanes:
                lane.close()
            for thread in threads:
                thread.join()
