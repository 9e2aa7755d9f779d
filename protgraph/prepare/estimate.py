"""Estimate of a preparation from a measured sample: residues, bytes and time."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from protgraph.errors import DatasetError
from protgraph.featurize.pipeline import Source, has_portable_features
from protgraph.featurize.plan import FeaturePlan
from protgraph.prepare.file_records import file_records, file_work
from protgraph.prepare.shard_task import SHARD_RESIDUES, split_shards
from protgraph.prepare.store_builder import prepare_records
from protgraph.structure.io.read_options import ReadOptions

__all__ = ["Estimate", "estimate_store"]


@dataclass(frozen=True)
class Estimate:
    """Estimate of a preparation.

    ``files``, ``shards``, ``sample``: numbers of inputs, of shards, and of inputs that were measured. ``failed``:
    measured proteins that cannot be used. ``residues``, ``bytes``, ``seconds``: residues and bytes of the store, and
    time with the given number of processes.
    """

    files: int
    shards: int
    sample: int
    failed: int
    residues: float
    bytes: float
    seconds: float


def estimate_store(
    sources: Source | Iterable[Source],
    plan: FeaturePlan,
    *,
    read: ReadOptions | None = None,
    jobs: int = 1,
    shard_residues: int = SHARD_RESIDUES,
    sample: int = 200,
) -> Estimate:
    """Estimate residues, bytes and time of :func:`protgraph.prepare.prepare_store` from a random sample of the files.

    The sample is prepared by this process in a temporary folder. What it costs is multiplied by the expected residues
    of all files over those of the sample; time is divided by the number of processes.

    ``sources``, ``plan``, ``read``, ``jobs``, ``shard_residues``: see :func:`protgraph.prepare.prepare_store`.
    ``sample``: number of files to draw. If there are not more, residues and bytes are exact. Raises
    :class:`DatasetError` if there are no inputs.
    """
    begin = time.perf_counter()
    read = (read or ReadOptions()).with_ligands(plan.needs_ligands)
    records = list(file_records(sources, read))
    if not records:
        raise DatasetError("estimate_store: there are no inputs. Give files, folders or graph stores.")
    work = file_work(plan, read)
    chosen = records
    if len(records) > sample:
        drawn = sorted(random.Random(0).sample(range(len(records)), sample))
        chosen = [records[i] for i in drawn]
    listing = time.perf_counter() - begin
    with tempfile.TemporaryDirectory(prefix="protgraph-") as folder:
        # the first graphs load libraries, whose time does not grow with the number of files
        smallest = min(chosen, key=lambda record: record.residues)
        prepare_records([smallest], Path(folder) / "first", work, jobs=0)
        begin = time.perf_counter()
        prepared = prepare_records(chosen, Path(folder) / "sample", work, jobs=0, shard_residues=shard_residues)
        measured = time.perf_counter() - begin
    share = sum(record.residues for record in records) / sum(record.residues for record in chosen)
    processes = jobs if has_portable_features(plan) else 1
    return Estimate(
        files=len(records),
        shards=sum(1 for _ in split_shards(records, residues=shard_residues)),
        sample=len(chosen),
        failed=prepared.total("failures"),
        residues=prepared.total("residues") * share,
        bytes=prepared.total("bytes") * share,
        seconds=listing + measured * share / max(processes, 1),
    )
