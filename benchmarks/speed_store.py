"""Rate of batches from a graph store, and from datasets of PyG."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset, OnDiskDataset

from benchmarks.cost_table import CostTable, show_rows
from benchmarks.synthetic_inputs import protein, threads
from benchmarks.timing import interleave
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.data.store.store_writer import ShardWriter

__all__ = ["measure"]

PROTEINS, SIZES, DEGREE = 200, (80, 400), 30
BATCH_RESIDUES, SHARD_BYTES = 2048, 4 << 20
LOCAL = "store"
IN_MEMORY, ON_DISK = "PyG InMemoryDataset", "PyG OnDiskDataset (SQLite)"


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Read all batches of an epoch in the same order; raise if a batch differs from that of the local store."""
    sizes = torch.randint(*SIZES, (PROTEINS,), generator=torch.Generator().manual_seed(0)).tolist()
    graphs = [protein(n, DEGREE, seed=seed) for seed, n in enumerate(sizes)]
    order = list(ProteinBatches(sizes, max_nodes=BATCH_RESIDUES, shuffle=True, seed=0))
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(graphs, Path(folder))
        batches = {name: (lambda collate=collate: map(collate, order)) for name, collate in ways.items()}
        size = _check_equal(batches)
        timings = interleave({name: _reader(own) for name, own in batches.items()}, reference=LOCAL, seconds=seconds)
    rows = [(t.name, PROTEINS / t.ms * 1e3, size / t.ms / 1e3, 1 / t.ratio) for t in timings]
    return [
        CostTable(
            title=f"batches of {BATCH_RESIDUES} residues × {DEGREE} neighbors, {PROTEINS} proteins in random order, "
            f"{threads()}",
            columns=("batches from", "proteins/s", "MB/s", f"rate × {LOCAL}"),
            rows=show_rows(rows),
            caption=f"{size / 1e6:.0f} MB of tensors per epoch, files in the page cache; batches are equal.",
        )
    ]


Collate = Callable[[Sequence[int]], Batch]


def _ways(graphs: Sequence[ProteinGraph], folder: Path) -> dict[str, Collate]:
    """Return the function from protein numbers to a batch of each implementation."""
    writer = ShardWriter(folder / "store", shard_bytes=SHARD_BYTES)
    for graph in graphs:
        writer.add(graph)
    writer.close()
    store = GraphStore(folder / "store")
    ways: dict[str, Collate] = {LOCAL: store.collate}
    plain = [_tensors(graph) for graph in graphs]
    memory = _InMemory(plain)
    disk = OnDiskDataset(str(folder / "disk"))
    disk.extend(plain)
    ways[IN_MEMORY] = lambda members: Batch.from_data_list([memory[i] for i in members])
    ways[ON_DISK] = lambda members: Batch.from_data_list(disk.multi_get(members))
    return ways


def _tensors(graph: ProteinGraph) -> Data:
    return Data(**{key: value for key, value in graph.items() if isinstance(value, Tensor)})


class _InMemory(InMemoryDataset):
    """Graphs in memory, joined by PyG."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(list(graphs))
        self._data_list = [None] * len(graphs)  # each access slices the joined tensors


def _reader(batches: Callable[[], Iterator[Batch]]) -> Callable[[], int]:
    return lambda: sum(batch.num_graphs for batch in batches())


def _check_equal(batches: dict[str, Callable[[], Iterator[Batch]]]) -> int:
    """Return the bytes of the tensors of all batches; raise if those of two implementations differ."""
    size = 0
    for number, parts in enumerate(zip(*(own() for own in batches.values()), strict=True)):
        first = {key: value for key, value in parts[0].items() if isinstance(value, Tensor)}
        size += sum(value.nbytes for value in first.values())
        for name, part in zip(batches, parts, strict=True):
            wrong = [key for key, value in first.items() if not torch.equal(value, part[key])]
            if wrong:
                raise AssertionError(f"batch {number} of {name} differs from that of {LOCAL} in {', '.join(wrong)}")
    return size
