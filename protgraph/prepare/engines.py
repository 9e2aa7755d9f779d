"""Engines that apply a function to tasks: this process, worker processes, or Ray.

The order in which tasks finish does not matter: each is independent, and may be repeated.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, TypeVar

from protgraph.errors import MissingExtraError, OptionError, WorkerDiedError
from protgraph.prepare.shard_task import ShardTask
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["ENGINES", "run_shards"]

Result = TypeVar("Result")

ENGINES = ("local", "ray")
"""Names of the engines."""
_RETRIES = 20  # of a task whose process died; each two find a record at which processes die
_STORE_BYTES = 100_000_000  # memory of Ray for messages; shards are files


def run_shards(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], *, engine: str = "local", jobs: int = 1
) -> Generator[tuple[ShardTask, Result]]:
    """Yield tasks with their results, as they finish.

    The task of a killed process is repeated. Closing the generator ends the processes.

    Parameters
    ----------
    tasks : iterable of ShardTask
        Read as processes become free ("local"), or at the start ("ray").
    work : callable
        Picklable function from a task to its result, e.g. :class:`protgraph.prepare.ShardWork`.
    engine : str
        "local": processes of this computer. "ray": Ray Data, on the cluster of ``RAY_ADDRESS``, or on a local one;
        on a cluster, inputs and output must be on a shared file system.
    jobs : int
        Number of processes; 0 runs in this process.

    Raises
    ------
    OptionError
        The engine is not known.
    MissingExtraError
        Ray is not installed.
    WorkerDiedError
        The processes of a task died again and again.
    Exception
        The exception of the function; it ends the run.
    """
    if engine not in ENGINES:
        raise OptionError(f"engine {engine!r}. Allowed: {', '.join(ENGINES)}.")
    if jobs < 0 or (engine == "ray" and jobs < 1):
        raise OptionError(f"run_shards: jobs = {jobs} (engine {engine!r}). Allowed: 1 or more.")
    if engine == "ray":
        yield from _run_with_ray(tasks, work, jobs)
    elif jobs == 0:
        yield from ((task, work(task)) for task in tasks)
    else:
        with closing(WorkerPool(work, workers=jobs, retries=_RETRIES).run(tasks)) as results:
            for task, result in results:
                if isinstance(result, WorkerDied):
                    raise _died(task, result.reason)
                yield task, result


def _died(task: ShardTask, reason: str) -> WorkerDiedError:
    first, last = task.records[0].label, task.records[-1].label
    return WorkerDiedError(
        f"shard {task.number} ({first!r} to {last!r}): its process {reason}, {_RETRIES + 1} times. Finished shards are "
        "kept. Run again with fewer jobs or smaller shards."
    )


def _run_with_ray(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], jobs: int
) -> Generator[tuple[ShardTask, Result]]:
    """Run tasks with Ray Data, one block per task; Ray repeats the task of a killed process, without a limit."""
    try:
        import ray
        import ray.data
    except ImportError as e:
        raise MissingExtraError("engine 'ray' requires Ray Data. Install it: pip install 'protgraph-pyg[ray]'.") from e
    remaining = {task.number: task for task in tasks}
    if not remaining:
        return
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    is_own = not ray.is_initialized()
    if is_own:
        _start_ray(ray, jobs)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = [{"number": number, "task": pickle.dumps(task)} for number, task in remaining.items()]
        blocks = ray.data.from_items(rows, override_num_blocks=len(rows))
        done = blocks.map(_RowWork(work), num_cpus=1, compute=ray.data.TaskPoolStrategy(size=jobs))
        for row in done.iter_rows():
            result = pickle.loads(row["result"])
            if isinstance(result, Exception):
                raise result
            yield remaining.pop(row["number"]), result
    finally:
        if is_own:
            ray.shutdown()


def _start_ray(ray: Any, jobs: int) -> None:
    """Connect to the cluster of RAY_ADDRESS, or start one of ``jobs`` processes on this computer."""
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level="ERROR", log_to_driver=False)
        return
    variables = {"PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path), "OMP_NUM_THREADS": "1"}
    ray.init(
        num_cpus=jobs,
        object_store_memory=_STORE_BYTES,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        runtime_env={"env_vars": variables},
    )


class _RowWork:
    """Function from a row of Ray Data to a row; exceptions are results, which Ray would repeat or wrap."""

    def __init__(self, work: Callable[[ShardTask], Any]) -> None:
        self.work = work

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            result = self.work(pickle.loads(row["task"]))
        except Exception as e:  # noqa: BLE001 -- raised in the process of the caller
            result = e
        return {"number": row["number"], "result": pickle.dumps(result)}
