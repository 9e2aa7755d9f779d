"""Graph stores that litdata streams: chunks are fetched when they are used, and mapped from its cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Batch

from protgraph.data.store.batch_loader import RankBatches, StoreLoader
from protgraph.data.store.graph_shard import GraphShard
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.litdata_chunks import DESCRIPTION, shard_chunk_loader
from protgraph.data.store.litdata_export import require_litdata
from protgraph.data.store.loader import ProteinBatches
from protgraph.data.store.shard_file import map_shard_file
from protgraph.data.store.store_description import parse_description

__all__ = ["LitdataStore", "StreamingDataLoader"]


class LitdataStore(GraphStore):
    """Graphs of a folder of :func:`~protgraph.data.store.litdata_export.export_litdata`, used like a graph store.

    Parameters
    ----------
    path : str or Path
        Folder or address that litdata reads, e.g. ``s3://bucket/folder``.
    **options
        Of ``litdata.StreamingDataset``, e.g. ``cache_dir``, ``max_cache_size``, ``storage_options``.

    Raises
    ------
    MissingExtraError
        litdata is not installed.
    DatasetError
        The last item is not the description of a graph store.
    """

    def __init__(self, path: str | Path, **options: Any) -> None:
        require_litdata()
        from litdata import StreamingDataset

        self.path, self.options = path, options
        self._stream = StreamingDataset(str(path), item_loader=shard_chunk_loader()(), **options)
        last = len(self._stream.subsampled_files) - 1
        file, offset = self._place_of_item(last)
        content = map_shard_file(file, offset=offset)
        self._describe(parse_description(content.plain(DESCRIPTION), where=path))
        self._sizes = content.arrays["sizes"]

    @property
    def sizes(self) -> np.ndarray:
        """``(P,)`` int64, nodes of each protein."""
        return self._sizes

    def __reduce__(self) -> tuple[object, ...]:
        return partial(LitdataStore, **self.options), (self.path,)

    def _place_of_item(self, number: int) -> tuple[Path, int]:
        """Return the local file of a chunk, which is fetched if necessary, and the first byte of its item."""
        from litdata.streaming.sampler import ChunkedIndex

        return self._stream[ChunkedIndex(index=number, chunk_index=number)]

    def _open_shard(self, number: int) -> GraphShard:
        path, offset = self._place_of_item(number)
        return GraphShard(path, offset=offset)


class StreamingDataLoader:
    """Batches of a :class:`LitdataStore`: those of a :class:`ProteinBatches` over the local store, in the same order.

    Not litdata.StreamingDataLoader: its order depends on the numbers of processes and workers, and its batches are
    numbers of items, not of residues (litdata 0.2.76, 2026-11-22).

    Parameters
    ----------
    store : LitdataStore
    max_nodes : int
        Largest number of nodes of a batch, of all processes together.
    seed, epoch : int
        Determine the order; see :meth:`set_epoch`.
    rank, world_size : int
        This process and the number of processes; each gets its share of every batch.
    workers : int
        Worker processes that fetch and collate.
    """

    def __init__(
        self,
        store: LitdataStore,
        *,
        max_nodes: int,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
    ) -> None:
        batches = ProteinBatches(store.sizes, max_nodes=max_nodes, shuffle=True, seed=seed, epoch=epoch)
        self._loader = StoreLoader(store.collate, RankBatches(batches, rank, world_size), workers=workers)

    def set_epoch(self, epoch: int) -> None:
        """Select the order of an epoch."""
        sampler = self._loader.rank_batches
        sampler.batches = sampler.batches.at_epoch(epoch)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader)
