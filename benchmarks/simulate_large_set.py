"""Feed synthetic records through the scheduling, sharding and resuming of ``protgraph featurize``, and check the store.

Run it as ``python -m benchmarks.simulate_large_set --records 1000000``. The scheduler is killed several times in the
middle and started again, and so are worker processes. The graphs have two residues, so that the time is that of
everything but reading and features.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.synthetic_records import SyntheticWork, label_of, synthetic_records
from protgraph.data.store import GraphStore
from protgraph.errors import DatasetError
from protgraph.prepare import prepare_records
from protgraph.process_memory import peak_memory

__all__ = ["Simulation", "simulate"]

_POLL = 0.05  # seconds between two counts of finished shards


@dataclass(frozen=True)
class Simulation:
    """Measurements of a simulation whose checks passed.

    Parameters
    ----------
    records, shards : int
    failures : int
        Records that cannot be read, as intended; they are in the store as failures.
    restarts, deaths : int
        Killed runs, and killed worker processes.
    repeated_shards, repeated_records : int
        What was processed more than once.
    seconds : float
        Of all runs.
    last_seconds : float
        Of the last run, which reuses the shards of the others.
    memory : float
        Growth of the memory of the last scheduler, MiB.
    scheduler_microseconds, worker_microseconds : float
        CPU time per record of the last scheduler, and of all worker processes of the last run.
    bytes : int
        Of the store.
    """

    records: int
    shards: int
    failures: int
    restarts: int
    deaths: int
    repeated_shards: int
    repeated_records: int
    seconds: float
    last_seconds: float
    memory: float
    scheduler_microseconds: float
    worker_microseconds: float
    bytes: int


def simulate(
    folder: str | Path,
    *,
    records: int,
    jobs: int = 2,
    restarts: int = 2,
    deaths: int = 5,
    shard_residues: int = 250_000,
) -> Simulation:
    """Prepare a store of synthetic records with interruptions, and check it.

    Parameters
    ----------
    folder : str or Path
        Empty folder.
    records : int
    jobs : int
        Worker processes.
    restarts : int
        How often the scheduler is killed and started again.
    deaths : int
        Records at which a worker process is killed.
    shard_residues : int
        Expected residues per shard; a record has 300.

    Raises
    ------
    DatasetError
        A record is missing, is in the store twice or in another place, or more was repeated than what was interrupted.
    """
    folder = Path(folder)
    options = {"records": records, "jobs": jobs, "deaths": deaths, "shard_residues": shard_residues}
    expected = max(1, records * 300 // shard_residues)
    begin = time.perf_counter()
    for restart in range(restarts):
        _run_until(folder, options, shards=expected * (restart + 1) // (restarts + 1))
    last = time.perf_counter()
    memory, *cpu = _run(folder, options)
    end = time.perf_counter()
    store = GraphStore(folder / "store")
    shard_of_record = _check_contents(store, records)
    repeated = _check_executions(folder, shard_of_record, restarts * jobs + deaths)
    size = sum(shard.bytes for shard in store.shards)
    failures = sum(shard.failures for shard in store.shards)
    per_record = [1e6 * seconds / records for seconds in cpu]
    counts = (records, len(store.shards), failures, restarts, deaths, *repeated)
    return Simulation(*counts, end - begin, end - last, memory, *per_record, size)


def _command(folder: Path, options: dict[str, int]) -> list[str]:
    return [sys.executable, "-m", "benchmarks.simulate_large_set", "--run", json.dumps([str(folder), options])]


def _run_until(folder: Path, options: dict[str, int], *, shards: int) -> None:
    """Start the scheduler and kill it when so many shards are finished."""
    process = subprocess.Popen(_command(folder, options), stdout=subprocess.DEVNULL)
    finished = folder / ".store.parts" / "shards"
    while process.poll() is None:
        if finished.is_dir() and sum(1 for _ in finished.iterdir()) >= shards:
            break
        time.sleep(_POLL)
    if process.poll() is not None:
        raise DatasetError(f"{folder}: the run ended before it was killed, with exit code {process.returncode}.")
    process.kill()
    process.wait()


def _run(folder: Path, options: dict[str, int]) -> list[float]:
    """Run the scheduler to its end; return the growth of its memory, MiB, its CPU time and that of its workers, s."""
    done = subprocess.run(_command(folder, options), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def _prepare(folder: str, options: dict[str, int]) -> None:
    """Run the scheduler in this process, and print the growth of its memory and CPU times."""
    before, begin = peak_memory(torch.device("cpu")), time.process_time()
    records, deaths = options["records"], options["deaths"]
    deadly = frozenset(np.linspace(0, records - 1, deaths + 2).astype(int)[1:-1].tolist())
    work = SyntheticWork(Path(folder), deadly)
    prepare_records(
        synthetic_records(records),
        Path(folder) / "store",
        work,
        jobs=options["jobs"],
        shard_residues=options["shard_residues"],
    )
    own, workers = time.process_time() - begin, os.times()
    growth = peak_memory(torch.device("cpu")) - before
    print(json.dumps([growth, own, workers.children_user + workers.children_system]))


def _check_contents(store: GraphStore, records: int) -> np.ndarray:
    """Raise unless each record is in the store once, in order; return the shard of each record."""
    number, shards = 0, np.zeros(records, np.int64)
    for place in range(len(store.shards)):
        shard = store.shard(place)
        failed = {at: failure.source for at, failure in shard.failures}
        sources = iter(shard.sources)
        for at in range(len(shard) + len(failed)):
            label = failed[at] if at in failed else next(sources)
            if number >= records or label != label_of(number):
                raise DatasetError(f"{store.path}: record {number} is {label!r}. Expected: {label_of(number)!r}.")
            shards[number] = place
            number += 1
    if number != records:
        raise DatasetError(f"{store.path}: {number} records. Expected: {records}.")
    return shards


def _check_executions(folder: Path, shard_of_record: np.ndarray, interrupted: int) -> tuple[int, int]:
    """Raise unless all records were processed, and few shards repeatedly; return numbers of shards and records."""
    counts = np.bincount(np.fromfile(folder / "executions", "<i8"), minlength=len(shard_of_record))
    if (counts == 0).any():
        raise DatasetError(f"{folder}: {int((counts == 0).sum())} records were never processed. Expected: none.")
    repeated = np.unique(shard_of_record[counts > 1])
    if len(repeated) > interrupted:
        raise DatasetError(f"{folder}: {len(repeated)} shards were repeated. Expected: at most {interrupted}.")
    return len(repeated), int((counts > 1).sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the simulation and print its measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--restarts", type=int, default=2, help="kill and start the scheduler again so many times")
    parser.add_argument("--deaths", type=int, default=5, help="kill so many worker processes")
    parser.add_argument("--shard-residues", type=int, default=250_000, help="expected residues per shard")
    parser.add_argument("--run", type=json.loads, help=argparse.SUPPRESS)
    options = vars(parser.parse_args(arguments))
    if (run := options.pop("run")) is not None:
        _prepare(*run)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, value in asdict(simulate(folder, **options)).items():
            print(f"{name:22} {value:,.0f}" if isinstance(value, int) else f"{name:22} {value:,.1f}")


if __name__ == "__main__":
    main()
