"""Chunks of litdata that hold one shard of a graph store each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["BEFORE_SHARD", "DESCRIPTION", "shard_chunk_loader"]

DESCRIPTION = "description"
"""Name of the description of the store in the last item."""
_HEADER = 12  # bytes of a chunk of one item: the number of items and two offsets, uint32
_PADDING = 4  # so that the arrays of the shard are aligned to 8 bytes
BEFORE_SHARD = _HEADER + _PADDING
"""Bytes of a chunk before its shard."""


@lru_cache
def shard_chunk_loader() -> type:
    """Return the loader of litdata for these chunks; a subclass of its own, which is imported on first use."""
    from litdata.streaming.item_loader import BaseItemLoader, Interval

    class ShardChunkLoader(BaseItemLoader):
        """Loader of litdata that returns the local file of a chunk and the first byte of its shard, to be mapped."""

        def state_dict(self) -> dict[str, Any]:
            """Return nothing: there are no options."""
            return {}

        def generate_intervals(self) -> list[Interval]:
            """Return one item per chunk."""
            return [Interval(i, i, i + 1, i + 1) for i in range(len(self._chunks))]

        def pre_load_chunk(self, chunk_index: int, chunk_filepath: str) -> None:
            """Do nothing: the file is mapped when its shard is used."""

        def load_item_from_chunk(
            self, index: int, chunk_index: int, chunk_filepath: str, begin: int, filesize_bytes: int
        ) -> tuple[Path, int]:
            """Wait until the file is complete, and return it with the place of the shard."""
            self._wait_until_chunk_ready(chunk_index, chunk_filepath, filesize_bytes)
            return Path(chunk_filepath), BEFORE_SHARD

        def delete(self, chunk_index: int, chunk_filepath: str) -> None:
            """Remove the file; maps of it stay valid."""
            Path(chunk_filepath).unlink(missing_ok=True)

        def close(self, chunk_index: int) -> None:
            """Do nothing: no file is kept open."""

        def encode_data(self, data: list[bytes], sizes: list[int], flattened: list[Any]) -> tuple[bytes, None]:
            """Return the bytes of an item of the chunk."""
            return bytes(_PADDING) + data[0], None

    return ShardChunkLoader
