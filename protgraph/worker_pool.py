"""Pool of worker processes: a process that dies loses only the item it works on.

Used by the pipeline from files to graphs and by benchmarks. A worker is a program of its own instead of a copy of the
caller (as in :mod:`multiprocessing`), so that a pool can be started from any script, notebook or test.

Not concurrent.futures (Python 3.11.7, 2026-11-22) and not loky (3.7.0, 2026-11-22): all processes write to one pipe.
After one of them is killed, every pending item fails (``BrokenProcessPool``), and if it was killed while it wrote a
result, the caller waits forever (2 of 16 interrupted runs in a test).
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, TypeVar

__all__ = ["WorkerDied", "WorkerPool", "is_portable", "run_worker"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: One thread per worker, so that as many workers as cores do not compete for cores.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
_LENGTH = 8  # bytes of the length before each message


@dataclass(frozen=True)
class WorkerDied:
    """Result of an item whose process died.

    Parameters
    ----------
    reason : str
        How it ended, e.g. "was killed by SIGKILL (out of memory?)".
    """

    reason: str


@dataclass(frozen=True)
class _Raised:
    """Exception of the function, sent instead of a result."""

    error: Exception


class WorkerPool(Generic[Item, Result]):
    """Apply a function to items in worker processes, each with one thread for numerical libraries.

    Parameters
    ----------
    function : callable
        From an item to its result. It, items and results must be picklable; see :func:`is_portable`.
    workers : int
        Number of processes; they start with the first items.
    log : Path, optional
        Everything that the processes print is appended to this file; by default to the standard error stream.
    retries : int
        Further attempts for an item whose process died, each in a new process.
    environment : mapping of str to str
        Environment variables of the processes; variables that are set already stay.
    """

    def __init__(
        self,
        function: Callable[[Item], Result],
        *,
        workers: int,
        log: Path | None = None,
        retries: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.function, self.workers, self.log, self.retries = function, workers, log, retries
        self.environment = dict(environment or {})

    def run(
        self, items: Iterable[Item], *, in_order: bool = False, ahead: int = 2
    ) -> Generator[tuple[Item, Result | WorkerDied]]:
        """Yield items with their results.

        Closing the generator, or an exception at its ``yield``, kills the processes.

        Parameters
        ----------
        items : iterable
            Read as processes become free.
        in_order : bool
            Yield in the order of the items instead of as they finish.
        ahead : int
            Items per process that are read before the caller has taken the results.

        Raises
        ------
        Exception
            The exception of the function; it ends the run.
        """
        with contextlib.ExitStack() as stack:
            file = None
            if self.log is not None:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(self.log.open("ab"))
            service = _Service(partial(_Worker, self.function, file, self.environment), self.workers, self.retries)
            stack.callback(service.close)
            yield from _collect(service, iter(items), in_order, ahead * self.workers)


def _collect(
    service: _Service, items: Iterator[Any], in_order: bool, limit: int
) -> Generator[tuple[Any, Any | WorkerDied]]:
    """Submit items while fewer than ``limit`` are under way, and yield finished ones."""
    open_items: dict[int, Any] = {}
    finished: dict[int, Any] = {}
    submitted = 0
    while True:
        for item in items:
            open_items[submitted] = item
            service.submit(submitted, item)
            submitted += 1
            if len(open_items) >= limit:
                break
        if not open_items:
            return
        number = min(open_items)
        while (number not in finished) if in_order else not finished:
            key, value = service.finished.get()
            finished[key] = value
        key = number if in_order else next(iter(finished))
        value = finished.pop(key)
        if isinstance(value, _Raised):
            raise value.error
        yield open_items.pop(key), value


class _Service:
    """Threads that each serve one worker process, between a queue of items and a queue of results."""

    def __init__(self, start: Callable[[], _Worker], limit: int, retries: int) -> None:
        self.start, self.limit, self.retries = start, limit, retries
        self.items: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self.finished: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []

    def submit(self, number: int, item: object) -> None:
        """Add an item; start a process for it unless all are started."""
        self.items.put((number, item))
        if len(self._workers) < self.limit:
            worker = self.start()
            thread = threading.Thread(target=self._serve, args=(worker,), daemon=True)
            self._workers.append(worker)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Kill the processes and end the threads."""
        for worker in self._workers:
            worker.close()
        for _ in self._threads:
            self.items.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, worker: _Worker) -> None:
        with _blocked_signals():
            while not worker.closed and (entry := self.items.get()) is not None:
                number, item = entry
                try:
                    value = worker.run(item)
                    for _ in range(self.retries):
                        value = worker.run(item) if isinstance(value, WorkerDied) else value
                except Exception as e:  # noqa: BLE001 -- e.g. an item that cannot be pickled; raised by run()
                    value = _Raised(e)
                self.finished.put((number, value))


class _Worker:
    """Worker process, started with its first item and again after it died."""

    def __init__(self, function: Callable[[Any], Any], log: IO[bytes] | None, environment: Mapping[str, str]) -> None:
        self.function, self.log, self.environment = function, log, environment
        self.closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, item: object) -> Any:
        """Return the result of one item, the exception that it raised, or how the process died."""
        message = _dumps(item)
        process = self._start()
        if process is None:
            return WorkerDied("was stopped")
        try:
            _write(process.stdin, message)
            answer = _read(process.stdout)
        except (BrokenPipeError, ValueError):  # the process is dead, or close() closed its pipes
            answer = None
        if answer is not None:
            return pickle.loads(answer)
        return WorkerDied(_exit_text(process.wait()))

    def close(self) -> None:
        """Kill the process; the worker accepts no more items."""
        with self._lock:
            self.closed = True
            self._end()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self.closed:
                return None
            if self._process is not None and self._process.poll() is not None:
                self._end()
            if self._process is None:
                path = os.pathsep.join(p or os.getcwd() for p in sys.path)
                self._process = subprocess.Popen(
                    [sys.executable, "-c", "from protgraph.worker_pool import run_worker; run_worker()"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self.log,
                    env=self.environment | os.environ | _THREADS | {"PYTHONPATH": path},
                )
                with contextlib.suppress(BrokenPipeError):  # run() reports a process that died at once
                    _write(self._process.stdin, _dumps(self.function))
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


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Leave Ctrl-C and SIGTERM to the main thread; processes that this thread starts never receive them.

    Ctrl-C on a terminal is sent to all processes. The first one stops the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_text(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def is_portable(*objects: object) -> bool:
    """Return True if worker processes can receive the objects: picklable, and importable from a module.

    Functions and classes of a script or notebook (``__main__``) are not importable.
    """
    try:
        return b"__main__" not in bytes(_dumps(objects))
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def run_worker() -> None:
    """Run the program of a worker process: read the function, then items, and write their results."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries does not mix with results
    items = sys.stdin.buffer
    message, function = _read(items), None
    while (item := _read(items)) is not None:
        try:
            function = function or pickle.loads(message)
            answer = _dumps(function(pickle.loads(item)))
        except Exception as e:  # noqa: BLE001 -- raised in the process of the caller
            answer = _dumps(_Raised(_picklable(e)))
        _write(results, answer)


def _picklable(error: Exception) -> Exception:
    """Return the exception with its traceback as a note; as a RuntimeError if it cannot be pickled."""
    trace = "".join(traceback.format_exception(error))
    try:
        error.add_note(trace)
        pickle.loads(_dumps(error))
    except Exception:  # noqa: BLE001 -- any failure of the exception's own code
        return RuntimeError(trace)
    return error


class _Pickler(pickle.Pickler):
    """Pickler that copies tensors of the CPU as arrays: 5 times as fast as torch's own, which writes archives."""

    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(obj) is not torch.Tensor or not _is_plain(obj, torch):
            return NotImplemented
        return torch.from_numpy, (obj.numpy(),)


def _is_plain(tensor: Any, torch: Any) -> bool:
    is_strided = tensor.layout is torch.strided and tensor.device.type == "cpu"
    is_bare = not tensor.requires_grad and not tensor.is_conj() and not tensor.is_neg()
    return is_strided and is_bare and tensor.dtype is not torch.bfloat16 and not vars(tensor)


def _dumps(message: object) -> memoryview:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getbuffer()


def _write(pipe: BinaryIO, message: memoryview) -> None:
    pipe.write(len(message).to_bytes(_LENGTH, "little"))
    pipe.write(message)
    pipe.flush()


def _read(pipe: BinaryIO) -> bytes | None:
    """Return one message; None at the end of the pipe, also in the middle of a message."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    message = pipe.read(int.from_bytes(length, "little"))
    return message if len(message) == int.from_bytes(length, "little") else None
