"""Input records, their grouping to shards by expected size and name, and engines that apply a function to shards.

The order in which tasks finish does not matter: each is independent, and may be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from protgraph.data.cache_key import digest
from protgraph.errors import OptionError, WorkerDiedError
from protgraph.registry.registries import engines
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

__all__ = ["InputRecord", "SHARD_RESIDUES", "ShardTask", "engines", "run_local", "run_shards", "split_shards"]

ENTRY_POINTS = {"protgraph.engines": {"local": "run_local"}}

SHARD_RESIDUES = 25_000
"""Expected residues per shard: about a second of work, and 50 MB with 30 neighbors and 16 radial functions."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One input of a store, e.g. a file; it gives any number of proteins.

    ``label``: unique name. ``residues``: expected number of residues, from the size of the file. ``data``: what the
    work reads; picklable.
    """

    label: str
    residues: float
    data: object = None


@dataclass(frozen=True)
class ShardTask:
    """The records of one shard, in order.

    ``number``: place of the shard in the store. ``deadly``: labels of records at which processes die; they become
    failures.
    """

    number: int
    records: tuple[InputRecord, ...]
    deadly: frozenset[str] = frozenset()

    @cached_property
    def name(self) -> str:
        """Digest of the labels."""
        return digest([record.label for record in self.records])

    @property
    def residues(self) -> float:
        """Expected number of residues."""
        return sum(record.residues for record in self.records)


def split_shards(records: Iterable[InputRecord], *, residues: int = SHARD_RESIDUES) -> Iterator[ShardTask]:
    """Group records to shards, in order, without reading ahead.

    A shard has between half and twice the expected residues; in this range, it ends after a record whose hashed name
    is below a threshold (content-defined chunking). If records are added, removed or changed, the boundaries of
    other shards stay where they are.

    ``residues``: mean of the expected residues of a shard. A larger record is a shard of its own.

    Examples
    --------
    >>> records = [InputRecord(f"{n}.pdb", 300) for n in range(1000)]
    >>> before = {task.name for task in split_shards(records, residues=3000)}
    >>> after = {task.name for task in split_shards([InputRecord("first.pdb", 300), *records], residues=3000)}
    >>> len(before), len(after - before)
    (109, 1)
    """
    if residues < 1:
        raise OptionError(f"split_shards: residues = {residues}. Allowed: 1 or more.")
    least, most = residues / 2, residues * 2
    number, total = 0, 0.0
    group: list[InputRecord] = []
    for record in records:
        if group and total + record.residues > most:
            yield ShardTask(number, tuple(group))
            number, group, total = number + 1, [], 0.0
        group.append(record)
        total += record.residues
        if total >= least and _fraction(record.label) < record.residues / least:
            yield ShardTask(number, tuple(group))
            number, group, total = number + 1, [], 0.0
    if group:
        yield ShardTask(number, tuple(group))


def _fraction(label: str) -> float:
    """Return the hash of the last part of a label as a number from 0 to 1."""
    name = label.rpartition("/")[2].encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") / 2**64


# --- engines: this process, worker processes, or those of extensions -------------------------------------------------


Result = TypeVar("Result")


def run_shards(
    tasks: Iterable[ShardTask], work: Callable[[ShardTask], Result], *, engine: str = "local", jobs: int = 1
) -> Generator[tuple[ShardTask, Result]]:
    """Yield tasks with their results, as they finish.

    A task at which processes die is run again at the end, without the records at which they die. Closing the generator
    ends the processes.

    ``tasks``: read as processes become free. ``work``: picklable function from a task to its result, e.g.
    :class:`protgraph.prepare.ShardWork`; an exception of it ends the run. ``engine``: "local": processes of this
    computer. "ray", of ``protgraph_plugins.scale``: a Ray cluster. ``jobs``: number of processes; 0 runs in this
    process. Raises :class:`OptionError` if the engine is not known. Raises :class:`WorkerDiedError` if the processes of
    a task die, but not at one of its records.
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
