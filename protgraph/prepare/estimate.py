"""Estimate of a preparation from a measured sample: residues, bytes and time, each with an interval."""

from __future__ import annotations

import heapq
import math
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protgraph.errors import DatasetError
from protgraph.featurize.pipeline import Source, has_portable_features
from protgraph.featurize.plan import FeaturePlan
from protgraph.prepare.engines import run_shards
from protgraph.prepare.file_records import FileWork, file_format, file_records
from protgraph.prepare.shard_task import SHARD_RESIDUES, InputRecord, ShardTask, split_shards
from protgraph.prepare.shard_work import ShardWork
from protgraph.structure.io.read_options import ReadOptions

__all__ = ["SAMPLE", "Estimate", "Quantity", "estimate_store"]

SAMPLE = 200
"""Files in the sample, by default."""
_LEAST = 10  # files of a format
_DEVIATIONS = 2.0  # half width of an interval: about 95 %
_TIME_ERROR = 0.1  # relative: other load of the computer, which the sample does not see
_TASKS = 4  # of the sample, per process


@dataclass(frozen=True)
class Quantity:
    """An estimated quantity, and the half width of its interval of about 95 %.

    Parameters
    ----------
    value, error : float
    """

    value: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper limit."""
        return max(0.0, self.value - self.error), self.value + self.error


@dataclass(frozen=True)
class Estimate:
    """Estimate of a preparation.

    Parameters
    ----------
    files, shards, sample : int
        Numbers of inputs, of shards, and of inputs that were measured.
    failed : int
        Measured inputs without a usable protein.
    residues, bytes, seconds : Quantity
        Residues and bytes of the store, and time with the given number of processes.
    """

    files: int
    shards: int
    sample: int
    failed: int
    residues: Quantity
    bytes: Quantity
    seconds: Quantity


def estimate_store(
    sources: Source | Iterable[Source],
    plan: FeaturePlan,
    *,
    read: ReadOptions | None = None,
    engine: str = "local",
    jobs: int = 1,
    shard_residues: int = SHARD_RESIDUES,
    sample: int = SAMPLE,
) -> Estimate:
    """Estimate residues, bytes and time of :func:`protgraph.prepare.prepare_store` from a sample of the files.

    Files are drawn with a probability proportional to their size, separately for each format, and processed by the
    engine with the same number of processes, in a temporary folder. The total of a quantity, y, in a format of B
    bytes is B times the mean of y / b over the drawn files of b bytes (Hansen & Hurwitz 1943). Time is that of
    the shards, distributed to the processes, and of the start of the processes.

    Parameters
    ----------
    sources, plan, read, engine, jobs, shard_residues
        See :func:`protgraph.prepare.prepare_store`.
    sample : int
        Number of files to draw; at least 10 of each format. All files are measured if there are not more.

    Raises
    ------
    DatasetError
        There are no inputs.

    References
    ----------
    Hansen M. H. & Hurwitz W. N. (1943). On the theory of sampling from finite populations. Annals of Mathematical
    Statistics 14, 333–362.
    """
    begin = time.perf_counter()
    read = (read or ReadOptions()).with_ligands(plan.needs_ligands)
    records = list(file_records(sources, read))
    if not records:
        raise DatasetError("estimate_store: there are no inputs. Give files, folders or graph stores.")
    if not has_portable_features(plan):
        engine, jobs = "local", 0
    work = FileWork.of(plan, read)
    strata = _strata(records, sample)
    chosen = sorted({int(i) for stratum in strata for i in stratum.drawn})
    listing = time.perf_counter() - begin
    with tempfile.TemporaryDirectory(prefix="protgraph-") as folder:
        measured = _measure([records[i] for i in chosen], ShardWork(Path(folder), work), engine, jobs)
    values = np.zeros((len(records), 2))
    values[chosen] = measured.values
    residues = _total(strata, values[:, 0])
    single = _total(strata, values[:, 1])
    seconds = np.zeros(len(records))
    for stratum in strata:
        rates = values[stratum.drawn] / stratum.sizes[stratum.places][:, None]
        density, rate = rates.mean(0)
        seconds[stratum.members] = stratum.sizes * (rate + density * measured.writing)
    seconds[chosen] = values[chosen, 1] + values[chosen, 0] * measured.writing
    tasks = list(split_shards(records, residues=shard_residues))
    elapsed = _makespan(_task_seconds(tasks, seconds), max(jobs, 1))
    relative = single.error / single.value if single.value else 0.0
    return Estimate(
        files=len(records),
        shards=len(tasks),
        sample=len(chosen),
        failed=int((values[chosen, 0] == 0).sum()),
        residues=residues,
        bytes=Quantity(residues.value * measured.density, residues.error * measured.density),
        seconds=Quantity(listing + measured.start + elapsed, elapsed * math.hypot(relative, _TIME_ERROR)),
    )


@dataclass(frozen=True)
class _Stratum:
    """Records of one format, and those that were drawn."""

    members: np.ndarray  # (M,) numbers of the records
    sizes: np.ndarray  # (M,) bytes
    places: np.ndarray  # (n,) drawn members, with repetitions
    is_complete: bool

    @property
    def drawn(self) -> np.ndarray:
        """Numbers of the drawn records, with repetitions."""
        return self.members[self.places]


@dataclass(frozen=True)
class _Measured:
    """Results of the sample: ``values`` has residues and seconds of each record."""

    values: np.ndarray  # (n, 2)
    density: float  # bytes per residue
    writing: float  # seconds per residue to write shards
    start: float  # seconds until processes are ready


def _strata(records: Sequence[InputRecord], sample: int) -> list[_Stratum]:
    """Draw records of each format, at equal distances of the cumulative sizes of the records ordered by size."""
    sizes = np.zeros(len(records))
    formats: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        form, sizes[number] = _format_and_size(record)
        formats.setdefault(form, []).append(number)
    strata = []
    for numbers in formats.values():
        members = np.array(numbers)[np.argsort(sizes[numbers], kind="stable")]
        own = sizes[members]
        count = max(_LEAST, round(sample * own.sum() / sizes.sum()))
        if count >= len(members):
            strata.append(_Stratum(members, own, np.arange(len(members)), True))
            continue
        steps = (np.arange(count) + 0.5) * own.sum() / count
        places = np.minimum(np.searchsorted(np.cumsum(own), steps), len(members) - 1)
        strata.append(_Stratum(members, own, places, False))
    return strata


def _format_and_size(record: InputRecord) -> tuple[str, float]:
    """Return the suffix and bytes of a file; for entries of databases, archives and stores, their expected residues."""
    path = record.label.partition("#")[0]
    try:
        found = os.stat(path)
    except OSError:
        return "entry", record.residues
    if not stat.S_ISREG(found.st_mode):
        return "entry", record.residues
    return file_format(path), max(1.0, float(found.st_size))


def _total(strata: Sequence[_Stratum], values: np.ndarray) -> Quantity:
    """Return the total of a quantity over all records, from the drawn ones."""
    total = variance = 0.0
    for stratum in strata:
        if stratum.is_complete:
            total += values[stratum.members].sum()
            continue
        ratios = values[stratum.drawn] / stratum.sizes[stratum.places]
        whole = stratum.sizes.sum()
        total += whole * ratios.mean()
        variance += whole**2 * ratios.var(ddof=1) / len(ratios)
    return Quantity(float(total), _DEVIATIONS * math.sqrt(variance))


def _measure(records: Sequence[InputRecord], work: ShardWork, engine: str, jobs: int) -> _Measured:
    """Process the sample like the shards of a store, after one record per process, which loads libraries."""
    count = min(len(records), _TASKS * max(jobs, 1))
    small = min(records, key=lambda record: record.residues)
    first = [replace(small, label=f"first record of process {number}") for number in range(max(jobs, 1))]
    tasks = [ShardTask(count + number, (record,)) for number, record in enumerate(first)]
    tasks += [ShardTask(number, tuple(records[number::count])) for number in range(count)]
    values = np.zeros((len(records), 2))
    residues = size = writing = 0.0
    start, begin = 0.0, time.perf_counter()
    with closing(run_shards(tasks, work, engine=engine, jobs=jobs)) as results:
        for task, result in results:
            if task.number >= count:
                start = time.perf_counter() - begin
                continue
            values[task.number :: count] = result.record_sizes
            residues += result.entry.residues
            size += result.entry.bytes
            writing += result.total_seconds - sum(seconds for _, seconds in result.record_sizes)
    per_residue = 1.0 / residues if residues else 0.0
    return _Measured(values, size * per_residue, writing * per_residue, start)


def _task_seconds(tasks: Sequence[ShardTask], seconds: np.ndarray) -> list[float]:
    ends = np.cumsum([len(task.records) for task in tasks])[:-1]
    return [float(part.sum()) for part in np.split(seconds, ends)]


def _makespan(seconds: Iterable[float], jobs: int) -> float:
    """Return the time of tasks that are distributed to processes as these become free."""
    busy = [0.0] * jobs
    for own in seconds:
        heapq.heapreplace(busy, busy[0] + own)
    return max(busy)
