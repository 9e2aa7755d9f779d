"""Rows of the manifest from finished shards: one per protein and failure, with losses, in the order of the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from protgraph.data.store.graph_shard import GraphShard
from protgraph.failure import Failure
from protgraph.featurize.manifest import COLUMNS
from protgraph.structure.residues.loss_report import LossReport

__all__ = ["failures_of", "shard_rows"]


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
