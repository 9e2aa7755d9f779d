"""Worker process that applies a function to items; if it dies, only the item at hand is lost.

The process is a program of its own instead of a copy of the caller (as in :mod:`multiprocessing`), so that it can be
started from any script, notebook or test.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

__all__ = ["WorkerDied", "WorkerProcess", "WorkerRaised", "blocked_signals", "is_portable", "run_worker"]

#: One thread per worker, so that as many workers as cores do not compete for cores.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
#: Program of the process.
_PROGRAM = (
    "from protgraph.deferred_imports import defer_imports; defer_imports(only_applies_models=False); "
    "from protgraph.worker_process import run_worker; run_worker()"
)
_LENGTH = 8  # bytes of the length before each message


@dataclass(frozen=True)
class WorkerDied:
    """Result of an item whose process died.

    ``reason``: how it ended, e.g. "was killed by SIGKILL (out of memory?)".
    """

    reason: str


@dataclass(frozen=True)
class WorkerRaised:
    """Exception of the function, in place of a result."""

    error: Exception


class WorkerProcess:
    """Worker process, started with its first item and again after it died.

    ``function``: from an item to its result; see :class:`WorkerPool`. ``log``: takes what the process prints; by
    default the standard error stream. ``environment``: environment variables of the process; variables that are set
    already stay.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        log: IO[bytes] | int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.function, self.log, self.environment = function, log, dict(environment or {})
        self.closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, item: object, *, time_limit: float | None = None) -> Any:
        """Return the result of one item, the exception that it raised as a value, or how the process died.

        The process is killed after ``time_limit`` seconds.
        """
        message = _dumps(item)
        process = self._start()
        if process is None:
            return WorkerDied("was stopped")
        requests, answers = _pipes(process)
        with _killed_after(time_limit, process) as expired:
            try:
                _write(requests, message)
                answer = _read(answers)
            except (BrokenPipeError, ValueError):  # the process is dead, or close() closed its pipes
                answer = None
        if answer is not None:
            return pickle.loads(answer)
        status = process.wait()
        return WorkerDied(f"did not finish within {time_limit:g} s" if expired.is_set() else _exit_text(status))

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
                with blocked_signals():
                    self._process = subprocess.Popen(
                        [sys.executable, "-P", "-c", _PROGRAM],  # -P: the search path of this process, no other
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=self.log,
                        env=self.environment | os.environ | _THREADS | {"PYTHONPATH": path},
                    )
                with contextlib.suppress(BrokenPipeError):  # run() reports a process that died at once
                    _write(_pipes(self._process)[0], _dumps(self.function))
            return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in _pipes(self._process):
            with contextlib.suppress(BrokenPipeError):  # closing flushes what the dead process did not read
                pipe.close()
        self._process = None


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes to and from a process that was started with both."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@contextmanager
def _killed_after(time_limit: float | None, process: subprocess.Popen[bytes]) -> Iterator[threading.Event]:
    """Kill the process if the block takes longer; the event is set then, and the process has ended after the block."""
    expired = threading.Event()
    if time_limit is None:
        yield expired
        return

    def expire() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(time_limit, expire)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()
        timer.join()
        if expired.is_set():
            process.wait()


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Leave Ctrl-C and SIGTERM to other threads; processes that this thread starts never receive them.

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
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)  # lines before a crash are not lost
    items = sys.stdin.buffer
    message = _read(items)
    if message is None:  # the caller is gone
        return
    function: Callable[[Any], Any] | None = None
    while (item := _read(items)) is not None:
        try:
            function = function or pickle.loads(message)
            answer = _dumps(function(pickle.loads(item)))
        except Exception as e:  # noqa: BLE001 -- raised in the process of the caller
            answer = _dumps(WorkerRaised(_picklable(e)))
        sys.stdout.flush()  # the process ends by being killed, which loses what is still in the buffer
        try:
            _write(results, answer)
        except BrokenPipeError:  # the caller is gone
            os._exit(0)


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


def _write(pipe: IO[bytes], message: memoryview) -> None:
    pipe.write(len(message).to_bytes(_LENGTH, "little"))
    pipe.write(message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """Return one message; None at the end of the pipe, also in the middle of a message."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    message = pipe.read(int.from_bytes(length, "little"))
    return message if len(message) == int.from_bytes(length, "little") else None
