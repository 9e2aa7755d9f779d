"""Collate proteins of mapped shards to a batch: one copy of each field, without a graph for each protein."""

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

__all__ = ["Members", "collate_members", "join_edge_index"]

Members = Sequence[tuple[GraphShard, int]]
"""Proteins of a batch: the shard of each, and its place in the shard."""


def collate_members(
    members: Members, levels: Mapping[str, str], attributes: Sequence[str], shifted: Collection[str]
) -> Batch:
    """Collate proteins to a batch with the fields of ``levels``; numbers of nodes in ``shifted`` fields are shifted."""
    spans = {level: _spans(members, level) for level in {"node", *levels.values()}}
    counts = {level: [stop - start for start, stop in rows] for level, rows in spans.items()}
    first_nodes = [*accumulate(counts["node"], initial=0)]
    tensors: dict[str, Tensor] = {}
    for key, level in levels.items():
        if key == "edge_index":
            tensors[key] = join_edge_index(members, counts[level], first_nodes)
            continue
        parts = [shard.arrays[key][a:b] for (shard, _), (a, b) in zip(members, spans[level], strict=True)]
        joined = np.concatenate(parts)
        if key in shifted:
            shift = np.repeat(first_nodes[:-1], counts[level])
            joined += shift.reshape(-1, *[1] * (joined.ndim - 1))
        tensors[key] = torch.from_numpy(joined)
    rows = {key: counts[level] for key, level in levels.items()}
    return make_batch(tensors, sizes=counts["node"], rows=rows, attributes=_plain(members, attributes))


def _spans(members: Members, level: str) -> list[tuple[int, int]]:
    """Return the first row of each protein at a level, and the row after its last."""
    return [(shard.offsets[level][i], shard.offsets[level][i + 1]) for shard, i in members]


def _plain(members: Members, attributes: Sequence[str]) -> dict[str, list[Any]]:
    """Return the attributes that are not numeric fields, one value per protein."""
    plain: dict[str, list[Any]] = {"degree": [shard.degrees[i] for shard, i in members]}
    for key in attributes:
        plain[key] = [shard.attribute(key, i) for shard, i in members]
    return plain


def join_edge_index(members: Members, counts: Sequence[int], first_nodes: Sequence[int]) -> Tensor:
    """Return the edges of a batch, ``(2, E)`` int64, from the edges and the first node of each protein."""
    edge_index = torch.empty(2, sum(counts), dtype=torch.int64)
    rows = edge_index.numpy()
    degrees = {shard.degrees[i] for shard, i in members}
    degree = degrees.pop() if len(degrees) == 1 else None
    if degree and all(EDGES[1] not in shard.arrays for shard, _ in members):
        rows[1].reshape(-1, degree)[:] = np.arange(first_nodes[-1])[:, None]  # (N, K)
        joined = EDGES[:1]
    else:
        joined = EDGES
    for row, name in zip(rows, joined, strict=False):
        np.concatenate([shard.edges(name, i) for shard, i in members], out=row)
        row += np.repeat(first_nodes[:-1], counts)
    return edge_index
