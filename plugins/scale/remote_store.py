"""Graph stores at an address: each shard is downloaded when it is used, verified, and kept on the local disk.

The description of the store and its shards are in the folder ``stores`` of the cache. A shard is named by its
SHA-256, so a store that is written again brings only the shards that changed.

Not the file caches of fsspec (2026.9.0, 2026-11-27): they neither verify nor resume a download, and two processes
download the same file at once. Not litdata (0.2.76, 2026-11-22): it needs an export to its own format.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock

from protgraph.data.store import META, ShardEntry, StoreDescription, read_description, shard_path
from protgraph.errors import DatasetError, FetchError, MissingExtraError, OfflineError
from protgraph.structure.io import FileNotOnServerError, cache_dir, download, is_offline

__all__ = ["RemoteFiles"]

ENTRY_POINTS = {
    "protgraph.stores": {
        "az": "RemoteFiles",
        "gs": "RemoteFiles",
        "hf": "RemoteFiles",
        "http": "RemoteFiles",
        "https": "RemoteFiles",
        "s3": "RemoteFiles",
    }
}

_DOWNLOADS = 8  # shards at a time
_BLOCK = 8 << 20  # bytes of a request to an object store


class RemoteFiles:
    """Files of the store at an address, for :class:`protgraph.data.GraphStore`.

    Parameters
    ----------
    address : str
        Folder of the store, e.g. ``s3://bucket/store`` or ``https://host/store``. HTTP is read by protgraph itself,
        other schemes by fsspec, which takes credentials and options from the environment and its configuration files.

    Raises
    ------
    DatasetError
        There is no graph store.
    FetchError
        The network or the server fails.
    OfflineError
        The description of the store is not in the cache, and downloads are disabled.
    MissingExtraError
        The library for the scheme is not installed.
    """

    def __init__(self, address: str) -> None:
        self.path = address.rstrip("/")
        self._folder = cache_dir() / "stores" / hashlib.sha256(self.path.encode()).hexdigest()[:16]
        self._shards = cache_dir() / "stores" / "shards"
        self._locks = cache_dir() / "stores" / "locks"
        for folder in (self._folder, self._shards, self._locks):
            folder.mkdir(parents=True, exist_ok=True)
        self._update_index()

    @property
    def index(self) -> Path:
        """Local copy of the description; it is replaced if the store is written again."""
        return self._folder / META

    def describe(self) -> StoreDescription:
        """Return the description of the store when it was opened."""
        return read_description(self._folder)

    def shard_files(self, shards: Sequence[ShardEntry]) -> list[Path]:
        """Return the local files of shards; download those that are missing, several at a time."""
        paths = [self._shards / f"{shard.sha256}.safetensors" for shard in shards]
        missing = [(shard, path) for shard, path in zip(shards, paths, strict=True) if not _is_complete(path, shard)]
        if missing:
            with ThreadPoolExecutor(min(_DOWNLOADS, len(missing))) as threads:
                for _ in threads.map(lambda pair: self._fetch_shard(*pair), missing):
                    pass
        return paths

    def _fetch_shard(self, shard: ShardEntry, path: Path) -> None:
        name = shard_path("", shard.key).as_posix()
        with FileLock(self._locks / f"{shard.sha256}.lock"):
            if _is_complete(path, shard):  # downloaded by another process in the meantime
                return
            if is_offline():
                raise OfflineError(f"{self.path}/{name} is not in {self._shards}, and downloads are disabled.")
            try:
                self._fetch(name, path, sha256=shard.sha256, size=shard.bytes)
            except FileNotOnServerError as e:
                raise DatasetError(f"{self.path}/{name} is missing. Copy the store to its address again.") from e

    def _update_index(self) -> None:
        """Download ``store.json``, and replace the local copy if it differs."""
        if is_offline():
            if not self.index.is_file():
                raise OfflineError(f"{self.path} is not in {self._folder}, and downloads are disabled.")
            return
        with FileLock(self._locks / f"{self._folder.name}.lock"):
            current = self._folder / "current.json"
            for leftover in self._folder.glob(f"{current.name}*"):  # of a process that was killed
                leftover.unlink()
            try:
                self._fetch(META, current)
            except FileNotOnServerError as e:
                raise DatasetError(f"{self.path!r} is not a graph store: it has no {META}.") from e
            if not self.index.is_file() or self.index.read_bytes() != current.read_bytes():
                os.replace(current, self.index)

    def _fetch(self, name: str, path: Path, *, sha256: str | None = None, size: int | None = None) -> None:
        """Download one file of the store; the rest of it if an earlier download was interrupted."""
        address = f"{self.path}/{name}"
        if address.startswith(("http://", "https://")):
            download(address, path, sha256=sha256)
        else:
            _download_by_fsspec(address, path, sha256=sha256, size=size)


def _is_complete(path: Path, shard: ShardEntry) -> bool:
    return path.is_file() and path.stat().st_size == shard.bytes


def _download_by_fsspec(address: str, path: Path, *, sha256: str | None, size: int | None) -> None:
    """Download a file in blocks, beginning after those that are there."""
    try:
        import fsspec

        filesystem, name = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as e:
        raise MissingExtraError(f"{address}: {e}: pip install 'protgraph-pyg[remote]'") from e
    partial = path.with_name(f"{path.name}.part")
    try:
        size = filesystem.size(name) if size is None else size
        with partial.open("ab") as file:
            while (start := file.tell()) < size:
                file.write(filesystem.cat_file(name, start=start, end=min(start + _BLOCK, size)))
    except FileNotFoundError as e:
        partial.unlink(missing_ok=True)
        raise FileNotOnServerError(address) from e
    except Exception as e:  # each file system has errors of its own
        raise FetchError(f"{address}: {type(e).__name__}: {e}. Start the command again to continue.") from e
    with partial.open("rb") as file:
        received = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 not in (None, received):
        partial.unlink()
        raise FetchError(f"{address}: the file has the SHA-256 {received}, not {sha256}. Copy the store again.")
    os.replace(partial, path)
