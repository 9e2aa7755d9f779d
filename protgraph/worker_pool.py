"""Pool of worker processes: a process that dies loses only the item it works on.

Used by the pipeline from files to graphs and by benchmarks.
"""

# Not concurrent.futures (Python 3.11.7) or loky (3.7.0): all processes write to one pipe. After one of them is killed,
# every pending item fails, or the caller waits forever (2 of 16 interrupted runs, 2026-11-22).

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from protgraph.worker_process import WorkerDied, WorkerProcess, WorkerRaised, blocked_signals

__all__ = ["WorkerPool"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerPool(Generic[Item, Result]):
    """Apply a function to items in worker processes, each with one thread for numerical libraries.

    ``function``: from an item to its result. It, items and results must be picklable; see :func:`is_portable`.
    ``workers``: number of processes; they start with the first items. ``log``: everything that the processes print is
    appended to this file; by default to the standard error stream. ``retries``: further attempts for an item whose
    process died, each in a new process. ``environment``: environment variables of the processes; variables that are set
    already stay.
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
        """
        with contextlib.ExitStack() as stack:
            file = None
            if self.log is not None:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(self.log.open("ab"))
            service = _Service(
                partial(WorkerProcess, self.function, file, self.environment), self.workers, self.retries
            )
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
        if isinstance(value, WorkerRaised):
            raise value.error
        yield open_items.pop(key), value


class _Service:
    """Threads that each serve one worker process, between a queue of items and a queue of results."""

    def __init__(self, start: Callable[[], WorkerProcess], limit: int, retries: int) -> None:
        self.start, self.limit, self.retries = start, limit, retries
        self.items: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self.finished: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._workers: list[WorkerProcess] = []
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

    def _serve(self, worker: WorkerProcess) -> None:
        with blocked_signals():
            while not worker.closed and (entry := self.items.get()) is not None:
                number, item = entry
                try:
                    value = worker.run(item)
                    for _ in range(self.retries):
                        value = worker.run(item) if isinstance(value, WorkerDied) else value
                except Exception as e:  # noqa: BLE001 -- e.g. an item that cannot be pickled; raised by run()
                    value = WorkerRaised(e)
                self.finished.put((number, value))
