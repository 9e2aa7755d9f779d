"""Engines that apply a function to tasks: this process, worker processes, or those of extensions.

The order in which tasks finish does not matter: each is independent, and may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

from protgraph.errors import OptionError, WorkerDiedError
from protgraph.prepare.shard_task import ShardTask
from protgraph.registry.registries import engines
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["engines", "run_local", "run_shards"]

ENTRY_POINTS = {"protgraph.engines": {"local": "run_local"}}

Result = TypeVar("Result")


def run_shards(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], *, engine: str = "local", jobs: int = 1
) -> Generator[tuple[ShardTask, Result]]:
    """Yield tasks with their results, as they finish.

    A task at which processes die is run again at the end, without the records at which they die. Closing the generator
    ends the processes.

    Parameters
    ----------
    tasks : iterable of ShardTask
        Read as processes become free.
    work : callable
        Picklable function from a task to its result, e.g. :class:`protgraph.prepare.ShardWork`.
    engine : str
        "local": processes of this computer. "ray", of ``protgraph_plugins.scale``: a Ray cluster.
    jobs : int
        Number of processes; 0 runs in this process.

    Raises
    ------
    OptionError
        The engine is not known.
    WorkerDiedError
        The processes of a task die, but not at one of its records.
    Exception
        The exception of the function; it ends the run.
    """
    _check_engine(engine, jobs)
    if jobs == 0:
        yield from ((task, work(task)) for task in tasks)
        return
    run = engines.get(engine)
    died = []
    with closing(run(tasks, work, jobs)) as results:
        for task, result in results:
            if isinstance(result, WorkerDied):
                died.append(task)
            else:
                yield task, result
    # One process at a time: if memory was exhausted, each task has all of it.
    for task in died:
        records = [ShardTask(task.number, (record,)) for record in task.records]
        with closing(run(records, work, 1)) as results:
            deadly = [record.records[0].label for record, result in results if isinstance(result, WorkerDied)]
        yield task, _run_without(task, frozenset(deadly), run, work)


def _check_engine(engine: str, jobs: int) -> None:
    if engine not in engines:
        raise OptionError(f"engine {engine!r}. Allowed: {', '.join(engines.names())}.")
    if jobs < 0 or (engine != "local" and jobs < 1):
        raise OptionError(f"run_shards: jobs = {jobs} (engine {engine!r}). Allowed: 1 or more.")


def _run_without(
    task: ShardTask, deadly: frozenset[str], run: Callable[..., Generator], work: Callable[[ShardTask], Result]
) -> Result:
    """Return the result of a task without the records at which processes die."""
    with closing(run([replace(task, deadly=deadly)], work, 1)) as results:
        _, result = next(results)
    if isinstance(result, WorkerDied):
        raise _died(task, result.reason)
    return result


def run_local(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], jobs: int
) -> Generator[tuple[ShardTask, Result | WorkerDied]]:
    """Run tasks in worker processes of this computer."""
    return WorkerPool(work, workers=jobs, retries=1).run(tasks)


def _died(task: ShardTask, reason: str) -> WorkerDiedError:
    first, last = task.records[0].label, task.records[-1].label
    return WorkerDiedError(
        f"shard {task.number} ({first!r} to {last!r}): its process {reason}. Finished shards are kept. Run again with "
        "fewer jobs or smaller shards."
    )
