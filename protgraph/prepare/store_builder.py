"""Preparation of graph stores: shards in a folder beside the store until all are finished, then the store at once."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protgraph.argument_types import check_arguments
from protgraph.data.store.graph_shard import GraphShard
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_description import (
    SHARDS,
    ShardEntry,
    StoreDescription,
    is_store_folder,
    read_description,
    shard_path,
)
from protgraph.errors import DatasetError, FieldError, OptionError, list_first
from protgraph.failure import Failure
from protgraph.featurize.pipeline import Source, has_portable_features
from protgraph.featurize.plan import FeaturePlan
from protgraph.featurize.result import COLUMNS, write_manifest_rows
from protgraph.featurize.steps import plan_digest
from protgraph.prepare.file_records import file_records, file_work
from protgraph.prepare.shard_task import SHARD_RESIDUES, InputRecord, ShardTask, run_shards, split_shards
from protgraph.prepare.shard_work import RecordWork, ShardResult, ShardWork
from protgraph.prepare.store_folder import kept_parts, locked_store, place_store
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.loss_report import LossReport
from protgraph.wording import count_noun

__all__ = ["PreparedStore", "prepare_records", "prepare_store", "shard_rows"]

#: Called with each finished shard: expected residues of all records, if known, and of the shard; the result.
Progress = Callable[[float | None, float, ShardResult], None]


@dataclass(frozen=True)
class PreparedStore:
    """Result of a preparation.

    ``store``: None if there is no protein. ``shards``: all shards, in the order of the inputs. ``reused``: shards that
    were finished before. ``first_failures``: the first ten failures; ``store.failures`` has all. ``notes``: messages
    for the user.
    """

    store: GraphStore | None
    shards: tuple[ShardEntry, ...]
    reused: int = 0
    first_failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    def total(self, name: str) -> int:
        """Return the sum of a size over the shards, e.g. "proteins"."""
        return sum(getattr(shard, name) for shard in self.shards)


@check_arguments("sources", "plan", "read", "jobs")
def prepare_store(
    sources: Source | Iterable[Source],
    out: str | Path,
    plan: FeaturePlan,
    *,
    read: ReadOptions | None = None,
    engine: str = "local",
    jobs: int = 1,
    shard_residues: int = SHARD_RESIDUES,
    overwrite: bool = False,
    update: bool = False,
    manifest: str | Path | None = None,
    progress: Progress | None = None,
) -> PreparedStore:
    r"""Write the graphs of files to a store of shards; a stopped run continues, and unchanged shards are reused.

    The bytes of the store do not depend on the engine and the number of processes.

    Parameters
    ----------
    sources, plan, read
        See :func:`protgraph.featurize.iter_graphs`.
    out : str or Path
        Folder of the store.
    engine, jobs
        See :func:`protgraph.prepare.run_shards`. Featurizers that were registered in this session, which other
        processes cannot import, run in this process.
    shard_residues : int
        Expected residues per shard.
    overwrite : bool
        Replace an existing store.
    update : bool
        Replace an existing store if it has the same features and options, and none of its inputs is missing now.
    manifest : str or Path, optional
        Table with a row per protein: ".tsv", ".csv" or ".json".
    progress : callable
        Called with the expected residues of all inputs, those of each finished shard, and its result.

    Raises
    ------
    DatasetError
        The store exists.
    OptionError
        Another process writes the store, or an update would remove proteins or change features.
    OutputFileError
        The disk is full. Finished shards are kept in ``.NAME.parts``.

    Examples
    --------
    >>> import tempfile
    >>> fasta = Path(tempfile.mkdtemp()) / "two.fasta"
    >>> _ = fasta.write_text(">a\nMKT\n>b\nGG\n")
    >>> prepared = prepare_store(fasta, fasta.parent / "graphs", FeaturePlan(["residue_one_hot"]), jobs=0)
    >>> prepared.store.names, prepared.total("residues")
    (['a', 'b'], 5)
    """
    read = (read or ReadOptions()).with_ligands(plan.needs_ligands)
    info = {
        "features": [component.to_dict() for component in plan.components],
        "node_type": plan.node_type,
        "plan": plan_digest(plan),
        "read": read.to_dict(),
    }
    if not has_portable_features(plan):
        engine, jobs = "local", 0
    return prepare_records(
        list(file_records(sources, read)),
        out,
        file_work(plan, read),
        info=info,
        engine=engine,
        jobs=jobs,
        shard_residues=shard_residues,
        overwrite=overwrite,
        update=update,
        manifest=manifest,
        progress=progress,
    )


def prepare_records(
    records: Iterable[InputRecord],
    out: str | Path,
    work: RecordWork,
    *,
    info: Mapping[str, Any] | None = None,
    engine: str = "local",
    jobs: int = 1,
    shard_residues: int = SHARD_RESIDUES,
    overwrite: bool = False,
    update: bool = False,
    manifest: str | Path | None = None,
    progress: Progress | None = None,
) -> PreparedStore:
    """Write the graphs of any records to a store; :func:`prepare_store` does that for files.

    ``records``: read as shards are made; the total for ``progress`` is None unless it is a sequence. ``info``: plain
    data to keep in the store. ``out``, ``engine``, ``jobs``, ``shard_residues``, ``overwrite``, ``update``,
    ``manifest``, ``progress``: see :func:`prepare_store`.
    """
    final = Path(os.path.realpath(out))
    info = dict(info or {})
    total = sum(record.residues for record in records) if isinstance(records, Sequence) else None
    with locked_store(final), kept_parts(final) as unfinished:
        earlier = _earlier(final, info, overwrite=overwrite, update=update)
        tasks: Iterable[ShardTask] = split_shards(records, residues=shard_residues)
        if earlier is not None and not overwrite:
            tasks = list(tasks)
            _check_inputs(final, earlier.shards, _labels_of(tasks))
        checksums = {} if earlier is None else {shard.key: shard.sha256 for shard in earlier.shards}
        shard_work = ShardWork(unfinished, work, checksums, final if earlier else None)
        done = _Done()

        def add(task: ShardTask, result: ShardResult) -> None:
            done.add(task.number, result)
            if progress is not None:
                progress(total, task.residues, result)

        if earlier is not None or (unfinished / SHARDS).is_dir():  # of a run that was stopped
            tasks = _changed(tasks, shard_work, jobs, add)
        with closing(run_shards(tasks, shard_work, engine=engine, jobs=jobs)) as results:
            for task, result in results:
                add(task, result)
        return _finish(final, unfinished, done, info, manifest)


def _changed(
    tasks: Iterable[ShardTask], work: ShardWork, jobs: int, add: Callable[[ShardTask, ShardResult], None]
) -> Iterator[ShardTask]:
    """Yield the tasks whose shards must be written, and call ``add`` for the others.

    Threads read the inputs: an unchanged store needs no other process.
    """
    with ThreadPoolExecutor(max(jobs, 1)) as threads:
        for task in tasks:
            reused = work.reuse(task, threads.map)
            if reused is None:
                yield task
            else:
                add(task, reused)


@dataclass
class _Done:
    """Results of the tasks by number, without the data of proteins."""

    layout: dict[str, Any] = field(default_factory=dict)
    entries: dict[int, ShardEntry] = field(default_factory=dict)
    seconds: dict[int, array[float]] = field(default_factory=dict)
    reused: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, number: int, result: ShardResult) -> None:
        """Add a result."""
        if result.layout and self.layout and result.layout != self.layout:
            different = sorted(set(result.layout["order"]) ^ set(self.layout["order"]))
            raise FieldError(f"graphs of shard {number} differ in fields from others: {different}")
        self.layout = self.layout or result.layout
        self.entries[number], self.seconds[number] = result.entry, result.seconds
        self.reused += result.is_reused
        self.notes += result.notes


def _labels_of(tasks: Iterable[ShardTask]) -> set[str]:
    labels: set[str] = set()
    for task in tasks:
        labels.update(record.label for record in task.records)
    return labels


def _finish(
    final: Path, unfinished: Path, done: _Done, info: dict[str, Any], manifest: str | Path | None
) -> PreparedStore:
    """Put the store in its place, and write the manifest."""
    entries = tuple(done.entries[number] for number in sorted(done.entries))
    paths = [shard_path(unfinished, entry.key) for entry in entries]
    if manifest is not None:
        seconds = [done.seconds[number] for number in sorted(done.seconds)]
        write_manifest_rows(manifest, shard_rows(zip(paths, seconds, strict=True)))
    failed = (path for path, entry in zip(paths, entries, strict=True) if entry.failures)
    first = tuple(failure for failure, _ in zip(failures_of(failed), range(10), strict=False))
    has_proteins = any(entry.proteins for entry in entries)
    if has_proteins:
        place_store(final, unfinished, StoreDescription(done.layout, info, entries))
    shutil.rmtree(unfinished, ignore_errors=True)
    store = GraphStore(final) if has_proteins else None
    return PreparedStore(store, entries, done.reused, first, tuple(done.notes))


def _earlier(final: Path, info: Mapping[str, Any], *, overwrite: bool, update: bool) -> StoreDescription | None:
    """Return the description of the store that is replaced."""
    if not os.path.lexists(final):
        return None
    if not is_store_folder(final):
        raise DatasetError(f"{final} exists and is not a graph store. Give another name.")
    if not (overwrite or update):
        raise DatasetError(f"{final} exists. Give overwrite=True to replace it, or another name.")
    try:
        earlier = read_description(final)
    except DatasetError:
        if overwrite:
            return None
        raise
    different = [name for name in ("features", "node_type", "read") if earlier.info.get(name) != info.get(name)]
    if different and not overwrite:
        raise OptionError(
            f"graph store {str(final)!r} was written with other options ({', '.join(different)}). Add --overwrite to "
            "replace it, or give another name."
        )
    return earlier


def _check_inputs(final: Path, entries: Sequence[ShardEntry], labels: set[str]) -> None:
    """Raise if the store has inputs that are not given now; damaged shards are not read."""
    absent: list[str] = []
    for entry in entries:
        with suppress(DatasetError):
            absent += [label for label in GraphShard(shard_path(final, entry.key)).inputs if label not in labels]
    if absent:
        raise OptionError(
            f"graph store {str(final)!r} has proteins of {count_noun(len(absent), 'input')} not given now: "
            f"{list_first(absent, 3)}. Give all inputs, or add --overwrite to remove these proteins."
        )


def shard_rows(
    shards: Iterable[tuple[Path, Sequence[float]]],
) -> Iterator[tuple[dict[str, object], Mapping[str, Any]]]:
    """Yield the columns of each result by name, and its loss report; one shard is open at a time."""
    for path, seconds in shards:
        shard = GraphShard(path)
        failures = dict(shard.failures)
        count = len(shard) + len(failures)
        times = seconds or [0.0] * count
        proteins = iter(range(len(shard)))
        for place in range(count):
            measured = round(float(times[place]), 4)
            if place in failures:
                yield _failure_row(failures[place], measured), {}
            else:
                yield _protein_row(shard, next(proteins), measured)


def failures_of(paths: Iterable[Path]) -> Iterator[Failure]:
    """Yield the failures of shards, in order."""
    for path in paths:
        yield from (failure for _, failure in GraphShard(path).failures)


def _protein_row(shard: GraphShard, i: int, seconds: float) -> tuple[dict[str, object], Mapping[str, Any]]:
    described = shard.described_residues(i)
    loss = described["report"]
    edges = int(shard.offsets["edge"][i + 1] - shard.offsets["edge"][i]) if "edge" in shard.offsets else 0
    left_out = "; ".join(LossReport.from_dict(loss).lines())
    sizes = (shard.num_residues_of(i), edges, seconds, shard.checksums[i])
    return _row(shard.sources[i], "done", described["name"], *sizes, "", "", left_out), loss


def _failure_row(failure: Failure, seconds: float) -> dict[str, object]:
    reason = (failure.error_type, failure.message, "")
    return _row(failure.source, "failed", failure.protein, 0, 0, seconds, failure.sha256, *reason)


def _row(*values: object) -> dict[str, object]:
    return dict(zip(COLUMNS, values, strict=True))
