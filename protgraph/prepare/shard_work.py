"""Work on one shard: reuse it if its inputs are unchanged, else make its graphs and write it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protgraph.data.cache_key import digest
from protgraph.data.store.graph_shard import GraphShard
from protgraph.data.store.store_description import VERSION, ShardEntry, shard_path
from protgraph.data.store.store_writer import shard_entry, write_shard
from protgraph.errors import DatasetError, WorkerDiedError
from protgraph.failure import Failure
from protgraph.featurize.result import GraphResult, model_notes, reader_notes
from protgraph.prepare.shard_task import InputRecord, ShardTask
from protgraph.prepare.store_folder import link_file

__all__ = ["RecordWork", "ShardResult", "ShardWork"]

#: Like ``map``: apply the function to each record, and return the digests in the order of the records.
Apply = Callable[[Callable[[InputRecord], str], Sequence[InputRecord]], Iterable[str]]


@dataclass(frozen=True)
class RecordWork:
    """Work on one input record: picklable functions, the same in every process.

    ``results``: from a record to the digest of its content, equal to that of ``content``, and a result for each of its
    proteins. ``content``: from a record to the digest of its content, e.g. the SHA-256 of its file; "" if it cannot be
    read. ``code``: digest of everything but the inputs that determines the graphs: code, features, options. None if
    that is not known; shards are then never reused.
    """

    results: Callable[[InputRecord], tuple[str, Sequence[GraphResult | Failure]]]
    content: Callable[[InputRecord], str]
    code: str | None = None


@dataclass(frozen=True)
class ShardResult:
    """A finished shard.

    ``layout``: layout of its graphs; empty if it has none. ``is_reused``: True if the shard was finished before.
    ``seconds``: time for each protein, in the order of :func:`protgraph.prepare.store_builder.shard_rows`; empty if
    reused. ``total_seconds``: time for the shard. ``record_sizes``: residues and seconds of each record; empty if
    reused. ``notes``: messages for the user.
    """

    entry: ShardEntry
    layout: dict[str, Any]
    is_reused: bool
    seconds: array[float] = field(default_factory=lambda: array("f"))
    total_seconds: float = 0.0
    record_sizes: tuple[tuple[int, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardWork:
    """Function from a task to a finished shard, for all engines; it may be repeated at any time.

    The name of a shard is the digest of the labels and contents of its records and of the code.

    ``folder``: folder of the unfinished store. ``checksums``: key of each shard of an earlier store → SHA-256 of its
    file. ``earlier``: the earlier store.
    """

    folder: Path
    work: RecordWork
    checksums: Mapping[str, str] = field(default_factory=dict)
    earlier: Path | None = None

    def __call__(self, task: ShardTask) -> ShardResult:
        begin = time.perf_counter()
        results: list[GraphResult | Failure] = []
        contents, sizes = [], []
        proteins: Sequence[GraphResult | Failure]
        for record in task.records:
            start = time.perf_counter()
            if record.label in task.deadly:
                content, proteins = "", [_deadly_failure(record)]  # with this content, a later run tries again
            else:
                content, proteins = self.work.results(record)
            contents.append(content)
            results += proteins
            residues = sum(len(result.residues) for result in proteins if isinstance(result, GraphResult))
            sizes.append((residues, time.perf_counter() - start))
        entry, layout = self._write(task, self._key(task, contents), results)
        seconds = array("f", [result.seconds for result in results])
        notes: list[str] = []
        for result in results:
            if isinstance(result, GraphResult):
                report = {result.source: result.residues.report}
                notes += (*result.notes, *model_notes(report), *reader_notes(report))
        return ShardResult(entry, layout, False, seconds, time.perf_counter() - begin, tuple(sizes), tuple(notes))

    def _key(self, task: ShardTask, contents: Sequence[str]) -> str:
        return digest(VERSION, self.work.code, [record.label for record in task.records], list(contents))

    def _write(
        self, task: ShardTask, key: str, results: Sequence[GraphResult | Failure]
    ) -> tuple[ShardEntry, dict[str, Any]]:
        done = [result for result in results if isinstance(result, GraphResult)]
        return write_shard(
            self.folder,
            key,
            [result.graph for result in done],
            residues=[result.residues for result in done],
            sources=[result.source for result in done],
            checksums=[result.sha256 for result in done],
            failures=[(number, result) for number, result in enumerate(results) if isinstance(result, Failure)],
            inputs=[record.label for record in task.records],
        )

    def reuse(self, task: ShardTask, apply: Apply = map) -> ShardResult | None:
        """Return the shard if it was written before from the same contents, by this run or for the earlier store.

        ``apply``: apply a function to each record, e.g. ``map`` of a ``concurrent.futures.ThreadPoolExecutor``.
        """
        if self.work.code is None:
            return None
        key = self._key(task, list(apply(self.work.content, task.records)))
        path = shard_path(self.folder, key)
        if not path.is_file() and self.earlier is not None and key in self.checksums:
            source = shard_path(self.earlier, key)
            entry = _entry(source)
            if entry is None or entry.sha256 != self.checksums[key]:
                return None  # damaged
            link_file(source, path)
        entry = _entry(path)
        if entry is None:
            return None
        return ShardResult(entry, GraphShard(path).layout if entry.proteins else {}, True)


def _entry(path: Path) -> ShardEntry | None:
    """Return the entry of a finished shard; None if it is missing or damaged."""
    try:
        return shard_entry(path)
    except DatasetError:
        return None


def _deadly_failure(record: InputRecord) -> Failure:
    error = WorkerDiedError(
        f"{record.label}: its process died 2 times, maybe because memory is exhausted. The other files are not "
        "affected. Run again with fewer jobs."
    )
    return Failure.of(record.label, "", error)
