"""Collation of a batch: from a store, with PyG, and with neighbor search while collating."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from benchmarks.synthetic_inputs import protein, threads
from benchmarks.timing import Measurement, interleave
from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.store_writer import write_store

__all__ = ["measure"]

PROTEINS, SMALLEST, STEP, DEGREE = 8, 100, 40, 30  # 8 proteins of 100 to 380 residues


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure a batch of 8 proteins of 100–380 residues with 30 neighbors; the error is the fraction of other edges."""
    sizes = range(SMALLEST, SMALLEST + STEP * PROTEINS, STEP)
    graphs = [protein(n, DEGREE, seed=n) for n in sizes]
    plain = [Data(**{k: v for k, v in g.items() if isinstance(v, Tensor)}) for g in graphs]
    rows = list(range(len(graphs)))
    with tempfile.TemporaryDirectory() as folder:
        store = write_store(Path(folder) / "store", graphs)
        ways = {
            "store.collate": lambda: store.collate(rows),
            "collate(graphs)": lambda: collate(graphs),
            "PyG Batch.from_data_list, edges ready": lambda: Batch.from_data_list(plain),
            "padded cdist + topk while collating": lambda: _search_while_collating(plain),
        }
        batches = [way().edge_index for way in ways.values()]
        error = max(float((_sets(batches[0]) != _sets(b)).float().mean()) for b in batches)
        timings = interleave(ways, reference="store.collate", seconds=seconds)
        size = sum(v.numel() * v.element_size() for _, v in store.collate(rows).items() if isinstance(v, Tensor))
    return [
        Measurement(
            title=f"batch of {PROTEINS} proteins of {sizes[0]}–{sizes[-1]} residues × {DEGREE} neighbors, {threads()}",
            reference="store.collate",
            rows=timings,
            lower_bound=f"{size / 2**20:.1f} MiB to write",
            error=error,
        )
    ]


def _sets(edge_index: Tensor) -> Tensor:
    """Return the ``(N, K)`` sources of each node, ascending."""
    return edge_index[0].view(-1, DEGREE).sort(1)[0]


def _search_while_collating(graphs: Sequence[Data]) -> Batch:
    """Collate without stored edges: pad positions, compute all distances, select the k smallest, build edges."""
    batch = Batch.from_data_list([Data(**{k: v for k, v in g.items() if k != "edge_index"}) for g in graphs])
    sizes = batch.ptr.diff()
    longest = int(sizes.max())
    real = torch.arange(longest) < sizes[:, None]  # (B, L)
    padded = torch.zeros(len(graphs), longest, 3)
    padded[real] = batch.pos
    distance = torch.cdist(padded, padded)  # (B, L, L)
    distance.masked_fill_(~real[:, None], torch.inf).diagonal(dim1=1, dim2=2).fill_(torch.inf)
    near = distance.topk(DEGREE, largest=False)[1] + batch.ptr[:-1, None, None]  # (B, L, K)
    source = near[real].flatten()  # (E,)
    batch.edge_index = torch.stack([source, torch.arange(batch.num_nodes).repeat_interleave(DEGREE)])
    return batch
