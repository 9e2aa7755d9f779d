"""Files of a graph store: those of a folder, or of an address, from which an extension downloads them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from protgraph.data.store.store_description import (
    META,
    ShardEntry,
    StoreDescription,
    check_file_size,
    is_store_folder,
    read_description,
    shard_path,
)
from protgraph.registry.registries import stores

__all__ = ["StoreFiles", "is_store", "store_files", "store_index", "stores"]

_ADDRESS = re.compile(r"([a-z][a-z0-9]+):/+(?=[^/])")  # pathlib joins the slashes


class StoreFiles(Protocol):
    """Files of one graph store.

    Attributes
    ----------
    path : Path or str
        Folder, or address.
    index : Path
        Local file that changes when the store is written again.
    """

    path: Path | str
    index: Path

    def describe(self) -> StoreDescription:
        """Return the description of the store; raise :class:`DatasetError` if shards are missing or incomplete."""
        ...

    def shard_files(self, shards: Sequence[ShardEntry]) -> list[Path]:
        """Return the local file of each shard."""
        ...


class FolderFiles:
    """Files of a folder; see :class:`StoreFiles`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.index = self.path / META

    def describe(self) -> StoreDescription:
        """Read ``store.json``, and compare the sizes of all files with it."""
        description = read_description(self.path)
        for path, shard in zip(self.shard_files(description.shards), description.shards, strict=True):
            check_file_size(path, shard.bytes)
        return description

    def shard_files(self, shards: Sequence[ShardEntry]) -> list[Path]:
        """Return the file of each shard."""
        return [shard_path(self.path, shard.key) for shard in shards]


def is_store(path: object) -> bool:
    """Return True for the folder of a graph store, and for an address that an extension reads, e.g. ``s3://…``."""
    return is_store_folder(path) or _address(path) is not None


def store_files(path: str | os.PathLike[str]) -> StoreFiles:
    """Return the files of a folder or address; the description of an address is read once per process."""
    address = _address(path)
    return FolderFiles(path) if address is None else _remote_files(address)


def store_index(path: str | os.PathLike[str]) -> Path:
    """Return the local file that changes when a store is written again."""
    return store_files(path).index


def _address(path: object) -> str | None:
    """Return the address that a path is, with two slashes; None for other paths."""
    match = _ADDRESS.match(os.fspath(path)) if isinstance(path, str | os.PathLike) else None
    if match is None or match[1] not in stores:
        return None
    return f"{match[1]}://{os.fspath(path)[match.end() :]}"


@lru_cache(maxsize=16)
def _remote_files(address: str) -> StoreFiles:
    return stores.get(address.partition(":")[0])(address)
