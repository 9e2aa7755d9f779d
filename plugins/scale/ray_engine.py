"""Engine "ray": shards of a store on a Ray cluster, for ``protgraph featurize --engine ray``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Any, TypeVar

from protgraph.errors import MissingExtraError
from protgraph.prepare import ShardTask, WorkerDied

__all__ = ["run_with_ray"]

ENTRY_POINTS = {"protgraph.engines": {"ray": "run_with_ray"}}

Result = TypeVar("Result")

_STORE_BYTES = 100_000_000  # memory of Ray for messages; shards are files


def run_with_ray(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], jobs: int
) -> Generator[tuple[ShardTask, Result | WorkerDied]]:
    """Run tasks on the cluster of ``RAY_ADDRESS``, or on a local one; see :data:`protgraph.prepare.shard_task`.

    Parameters
    ----------
    tasks : iterable of ShardTask
    work : callable
        Picklable function from a task to its result. On a cluster, its inputs and outputs are on a shared file system.
    jobs : int
        Tasks at a time.

    Raises
    ------
    MissingExtraError
        Ray is not installed.
    """
    try:
        import ray
    except ImportError as e:
        raise MissingExtraError("engine 'ray' requires Ray. Install it: pip install 'protgraph-pyg[ray]'.") from e
    is_own = not ray.is_initialized()
    if is_own:
        _start(ray, jobs)
    try:
        function = ray.remote(num_cpus=1, max_retries=1)(_apply)
        shared_work = ray.put(work)
        remaining = iter(tasks)
        running: dict[Any, ShardTask] = {}
        while True:
            for task in islice(remaining, jobs - len(running)):
                running[function.remote(shared_work, task)] = task
            if not running:
                return
            (finished, *_), _ = ray.wait(list(running))
            task = running.pop(finished)
            yield task, _result(ray, finished)
    finally:
        if is_own:
            ray.shutdown()


def _apply(work: Callable[[ShardTask], Result], task: ShardTask) -> Result | Exception:
    """Return the result or the exception of a task; Ray would wrap an exception that is raised."""
    try:
        return work(task)
    except Exception as e:  # noqa: BLE001 -- raised in the process of the caller
        return e


def _result(ray: Any, finished: Any) -> Any:
    try:
        result = ray.get(finished)
    except ray.exceptions.RayTaskError:  # e.g. a result that cannot be pickled
        raise
    except ray.exceptions.RayError as e:  # the process, or its computer, died
        return WorkerDied(f"died ({type(e).__name__})")
    if isinstance(result, Exception):
        raise result
    return result


def _start(ray: Any, jobs: int) -> None:
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
