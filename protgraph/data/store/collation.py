"""Collate proteins of mapped shards to batches: one copy of each field, without a graph for each protein."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.data.graph.protein_graph import make_batch
from protgraph.data.store.graph_shard import EDGES, GraphShard

__all__ = ["Members", "collate_places", "join_edge_index"]

Members = Sequence[tuple[GraphShard, int]]
"""Proteins of a batch: the shard of each, and its place in the shard."""


def collate_places(
    batches: Sequence[Members],
    levels: Mapping[str, str],
    attributes: Sequence[str],
    shifted: Collection[str],
) -> list[Batch]:
    """Collate batches whose tensors are views of common tensors."""
    rows = {level: _Rows(batches, level) for level in {"node", *levels.values()}}
    nodes = rows["node"].counts
    starts = [[*accumulate(counts, initial=0)] for counts in nodes]  # first node of each protein in its batch
    tensors: dict[str, Sequence[Tensor]] = {}
    for key, level in levels.items():
        own = rows[level]
        if key == "edge_index":
            tensors[key] = join_edge_index(batches, own.counts, starts)
            continue
        joined = np.concatenate([shard.arrays[key][a:b] for shard, a, b in own.spans])
        if key in shifted:
            first = np.repeat([start for each in starts for start in each[:-1]], [n for c in own.counts for n in c])
            joined += first.reshape(-1, *[1] * (joined.ndim - 1))
        tensors[key] = torch.from_numpy(joined).split(own.totals)
    made = []
    for number, places in enumerate(batches):
        plain: dict[str, list[Any]] = {"degree": [shard.degrees[i] for shard, i in places]}
        plain |= {key: [shard.attribute(key, i) for shard, i in places] for key in attributes}
        batch = make_batch(
            {key: parts[number] for key, parts in tensors.items()},
            sizes=nodes[number],
            rows={key: rows[level].counts[number] for key, level in levels.items()},
            attributes=plain,
        )
        made.append(batch)
    return made


class _Rows:
    """Rows of one level of the proteins of several batches.

    Attributes
    ----------
    spans : list of tuple
        Shard, first row, and row after the last, of each protein.
    counts : list of list of int
        Rows of each protein of each batch.
    totals : list of int
        Rows of each batch.
    """

    def __init__(self, batches: Sequence[Members], level: str) -> None:
        spans = [[(shard, *shard.offsets[level][i : i + 2]) for shard, i in places] for places in batches]
        self.spans = [span for own in spans for span in own]
        self.counts = [[b - a for _, a, b in own] for own in spans]
        self.totals = [sum(counts) for counts in self.counts]


def join_edge_index(
    batches: Sequence[Members],
    counts: Sequence[Sequence[int]],
    starts: Sequence[Sequence[int]],
) -> list[Tensor]:
    """Return the edges of each batch, ``(2, E)`` int64."""
    totals = [sum(own) for own in counts]
    parts = torch.empty(2 * sum(totals), dtype=torch.int64).split([2 * total for total in totals])
    made = [part.view(2, -1) for part in parts]
    for index, places, own, first in zip(made, batches, counts, starts, strict=True):
        _fill_edge_index(index.numpy(), places, own, first)
    return made


def _fill_edge_index(index: np.ndarray, places: Members, counts: Sequence[int], starts: Sequence[int]) -> None:
    """Write the edges of one batch."""
    degrees = {shard.degrees[i] for shard, i in places}
    same = degrees.pop() if len(degrees) == 1 and all(EDGES[1] not in shard.arrays for shard, _ in places) else None
    if same:
        index[1].reshape(-1, same)[:] = np.arange(starts[-1])[:, None]  # (N, K)
    for row, name in zip(index[: 1 if same else 2], EDGES, strict=False):
        np.concatenate([shard.edges(name, i) for shard, i in places], out=row)
        row += np.repeat(starts[:-1], counts)
