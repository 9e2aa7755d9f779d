"""Writing of a graph store graph by graph, with the memory of one shard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.store_description import ShardEntry, StoreDescription
from protgraph.data.store.store_writer import write_shard
from protgraph.errors import DatasetError, FieldError

__all__ = ["ShardWriter"]

SHARD_BYTES = 32 << 20
"""Bytes of the fields of a shard."""


class ShardWriter:
    """Write graphs one after the other to a folder that :class:`GraphStore` opens; only one shard is in memory.

    Parameters
    ----------
    folder : str or Path
        The store. It is complete after :meth:`close`.
    shard_bytes : int
        Bytes of arrays and tensors after which a shard is written.
    info : mapping, optional
        Plain data to keep beside the graphs.

    Examples
    --------
    >>> import tempfile, torch
    >>> from protgraph.data.store.graph_store import GraphStore
    >>> folder = tempfile.mkdtemp()
    >>> writer = ShardWriter(folder, shard_bytes=100)
    >>> for name in ("1abc", "2abc", "3abc"):
    ...     writer.add(ProteinGraph(pos=torch.zeros(5, 3), name=name))
    >>> _ = writer.close()
    >>> store = GraphStore(folder)
    >>> store.names, len(store.shards)
    (['1abc', '2abc', '3abc'], 2)
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        shard_bytes: int = SHARD_BYTES,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.shard_bytes, self.info = Path(folder), shard_bytes, dict(info or {})
        self._entries: list[ShardEntry] = []
        self._layout: dict[str, Any] | None = None
        self._graphs: list[ProteinGraph] = []
        self._bytes = 0

    def add(self, graph: ProteinGraph) -> None:
        """Append a graph."""
        self._graphs.append(graph)
        self._bytes += sum(v.nbytes for v in graph.to_dict().values() if isinstance(v, Tensor | np.ndarray))
        if self._bytes >= self.shard_bytes:
            self._write()

    def close(self) -> StoreDescription:
        """Write the last shard and the description of the store; raise :class:`DatasetError` if there are no graphs."""
        if self._graphs:
            self._write()
        if self._layout is None:
            raise DatasetError(f"ShardWriter: no graphs were added to {str(self.folder)!r}. Add at least one.")
        description = StoreDescription(self._layout, self.info, tuple(self._entries))
        description.write(self.folder)
        return description

    def _write(self) -> None:
        entry, layout = write_shard(self.folder, f"{len(self._entries):06d}", self._graphs)
        if self._layout not in (None, layout):
            raise FieldError(
                f"graphs {self._graphs[0].name!r} to {self._graphs[-1].name!r} have other fields than those before. "
                "All graphs of a store need the same fields, shapes and attributes."
            )
        self._entries.append(entry)
        self._layout, self._graphs, self._bytes = layout, [], 0
