"""Run a function in a child process with a time limit; the child reports events, also if it then hangs or crashes.

Not concurrent.futures: a process that crashes breaks the whole pool (Python 3.11, 2026-11-22), and what a child prints
is not separated from the output of the caller.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

__all__ = ["ChildResult", "EventWriter", "run_child"]

_START_LIMIT = 180.0  # seconds until the child has imported what the function needs
_POLL = 0.02


class EventWriter:
    """Writer of events of the child: one JSON object per line, written at once.

    Parameters
    ----------
    path : str
        File that the parent reads.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 -- open as long as the process

    def write(self, event: str, **data: Any) -> None:
        """Write one event; "ready" starts the time limit, "done" is the last one."""
        self._file.write(json.dumps({"event": event, **data}) + "\n")
        self._file.flush()


@dataclass(frozen=True)
class ChildResult:
    """Result of :func:`run_child`.

    Parameters
    ----------
    events : list of dict
        The events of the child, in order.
    ending : str
        "" if the child reported "done", else how it ended, e.g. "was killed by SIGSEGV".
    seconds : float
        Time from "ready" to the end.
    output : tuple of bytes
        Everything that the child wrote to standard output and standard error.
    """

    events: list[dict[str, Any]]
    ending: str
    seconds: float
    output: tuple[bytes, bytes]

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the events of one name."""
        return [one for one in self.events if one["event"] == event]


def run_child(function: str, *arguments: str, timeout: float, preload: Sequence[str] = ()) -> ChildResult:
    """Run ``function(events, *arguments)`` in a new process.

    Parameters
    ----------
    function : str
        "module:function". It gets the path for an :class:`EventWriter` and the arguments.
    *arguments : str
    timeout : float
        Seconds from the event "ready" after which the process is killed.
    preload : sequence of str
        Modules that are imported once for all children, where the system can fork. Without any, the process is a new
        Python interpreter.
    """
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if preload and can_fork else "spawn")
    context.set_forkserver_preload(list(preload))
    with tempfile.TemporaryDirectory(prefix="protgraph-doctor-") as folder:
        paths = [str(Path(folder) / part) for part in ("events", "stdout", "stderr")]
        for path in paths:
            Path(path).touch()
        process = context.Process(target=_run, args=(function, paths, arguments), daemon=True)
        process.start()
        ending, seconds = _wait(process, Path(paths[0]), timeout)
        events = _read_events(Path(paths[0]))
        output = Path(paths[1]).read_bytes(), Path(paths[2]).read_bytes()
    is_done = any(event["event"] == "done" for event in events)
    return ChildResult(events, "" if is_done else ending, seconds, output)


def _run(function: str, paths: Sequence[str], arguments: Sequence[str]) -> None:
    """Redirect the output of this process to files and call the function."""
    for descriptor, path in zip((1, 2), paths[1:], strict=True):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    resolve_name(function)(paths[0], *arguments)


def _wait(process: BaseProcess, events: Path, timeout: float) -> tuple[str, float]:
    """Wait until the process ends or exceeds the limit; return how it ended, and the seconds since "ready"."""
    start, ready = time.monotonic(), None
    while process.is_alive():
        now = time.monotonic()
        if ready is None and b'"ready"' in events.read_bytes():
            ready = now
        limit = _START_LIMIT if ready is None else timeout
        if now - (ready or start) > limit:
            process.kill()
            process.join()
            return f"did not end within {limit:g} s", now - (ready or start)
        process.join(_POLL)
    return _exit_text(process.exitcode), time.monotonic() - (ready or start)


def _exit_text(status: int) -> str:
    if status >= 0:
        return f"ended the process with exit status {status}"
    return f"was killed by {signal.Signals(-status).name}"


def _read_events(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
