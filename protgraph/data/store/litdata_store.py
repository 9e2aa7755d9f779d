"""Graph stores that litdata streams: chunks are fetched when they are used, and mapped from its cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.litdata_chunks import BEFORE_SHARD, DESCRIPTION, shard_chunk_loader
from protgraph.data.store.litdata_export import require_litdata
from protgraph.data.store.loader import ProteinBatches, RankBatches, StoreLoader
from protgraph.data.store.shard_file import map_shard_file
from protgraph.data.store.store_description import parse_description
from protgraph.errors import DatasetError

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
        self._local = None if self._stream.input_dir.url else Path(self._stream.input_dir.path)
        file, offset = self._place_of_shard(len(self._stream.subsampled_files) - 1)
        content = map_shard_file(file, offset=offset)
        self._describe(parse_description(content.plain(DESCRIPTION), where=path))
        self._sizes = content.arrays["sizes"]
        if self._local is not None:  # chunks elsewhere are not fetched before they are used
            self._check_sizes()

    @property
    def sizes(self) -> np.ndarray:
        """``(P,)`` int64, nodes of each protein."""
        return self._sizes

    @property
    def reopened_path(self) -> str | Path:
        """Path from which other processes open this store, without options.

        Raises
        ------
        DatasetError
            The store was opened with options.
        """
        if self.options:
            raise DatasetError(
                f"LitdataStore {str(self.path)!r} as a dataset: the options {', '.join(self.options)} would be lost in "
                "other processes. Give the path alone; litdata reads its settings from the environment."
            )
        return self.path

    def __reduce__(self) -> tuple[object, ...]:
        return partial(LitdataStore, **self.options), (self.path,)

    def _place_of_shard(self, number: int) -> tuple[Path, int]:
        """Return the local file of a chunk, which is fetched if necessary, and the first byte of its shard."""
        from litdata.streaming.sampler import ChunkedIndex

        if self._local is not None:
            return self._local / self._stream.subsampled_files[number], BEFORE_SHARD
        return self._stream[ChunkedIndex(index=number, chunk_index=number)]


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
