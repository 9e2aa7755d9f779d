"""Files and description of a graph store: its fields and shards in ``store.json``, in a folder or at an address."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from protgraph import __version__
from protgraph.data.graph.fields import FieldSpec, is_registered, register_field
from protgraph.data.graph.fields import field as registered_field
from protgraph.errors import DatasetError
from protgraph.registry.registries import stores
from protgraph.validation import check_format_version

__all__ = [
    "FORMAT",
    "META",
    "SHARDS",
    "VERSION",
    "ShardEntry",
    "StoreDescription",
    "StoreFiles",
    "check_file_size",
    "is_store",
    "is_store_folder",
    "read_description",
    "register_stored_field",
    "shard_path",
    "store_files",
    "store_index",
    "stores",
]

FORMAT, VERSION = "protgraph-store", 3
"""Name and version of the format, in the description of each store."""
META = "store.json"
"""File with the description of a store."""
SHARDS = "shards"
"""Folder of the shards in a store."""


@dataclass(frozen=True)
class ShardEntry:
    """One shard of a store.

    Parameters
    ----------
    key : str
        Name of its file, without suffix.
    sha256 : str
        Hexadecimal SHA-256 of the file.
    bytes, proteins, nodes, edges, residues : int
        Sizes.
    failures : int
        Proteins and files of this shard that could not be used; their records are in the shard.
    """

    key: str
    sha256: str
    bytes: int
    proteins: int
    nodes: int
    edges: int
    residues: int
    failures: int = 0


@dataclass(frozen=True)
class StoreDescription:
    """Content of ``store.json``.

    Parameters
    ----------
    layout : dict
        ``order``: fields and attributes of every graph; ``numeric``: those that are joined arrays of numbers;
        ``level``: level of the rows of arrays; ``specs``: definitions of the fields; ``has_residues``.
    info : dict
        Plain data of the writer, e.g. ``features``, ``node_type``, ``plan``, ``read``.
    """

    layout: dict[str, Any]
    info: dict[str, Any] = field(default_factory=dict)
    shards: tuple[ShardEntry, ...] = ()

    def total(self, name: str) -> int:
        """Return the sum of a size over the shards, e.g. "proteins"."""
        return sum(getattr(shard, name) for shard in self.shards)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``store.json`` as plain data."""
        content = {"format": FORMAT, "version": VERSION, "protgraph": __version__}
        content |= {"info": self.info, "layout": self.layout}
        content |= {name: self.total(name) for name in ("proteins", "residues", "failures")}
        content |= {"shards": [asdict(shard) for shard in self.shards]}
        return content | {"sha256": _checksum(content)}

    def write(self, folder: Path) -> None:
        """Write ``store.json``."""
        (folder / META).write_text(json.dumps(self.to_dict(), indent=1), encoding="utf-8")


#: Keys of ``store.json``; another one may be the checksum, with a changed byte.
_KEYS = frozenset(
    ("format", "version", "protgraph", "info", "layout", "proteins", "residues", "failures", "shards", "sha256")
)


def _checksum(content: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a description, without its key "sha256"."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_description(folder: str | Path) -> StoreDescription:
    """Read ``store.json``."""
    path = Path(folder)
    try:
        content = json.loads((path / META).read_text(encoding="utf-8"))
    except OSError as e:
        raise DatasetError(f"{str(path)!r} is not a graph store: {META} cannot be read") from e
    except ValueError as e:
        raise DatasetError(f"{path / META} is not the description of a graph store. Write the store again.") from e
    try:
        if content["format"] != FORMAT:
            raise KeyError("format")
        check_format_version(
            f"graph store {str(path)!r}",
            content["version"],
            VERSION,
            oldest=VERSION,
            writer=content.get("protgraph"),
            error=DatasetError,
        )
        checksum = _checksum(content)
        is_changed = content.get("sha256", checksum) != checksum  # the first stores of version 3 have none
        if is_changed or not _KEYS.issuperset(content):
            raise DatasetError(f"{path / META} is damaged: its checksum differs. Copy the store again.")
        names = [f.name for f in fields(ShardEntry)]
        shards = []
        for shard in content["shards"]:
            shards.append(ShardEntry(*[shard[name] for name in names]))
        return StoreDescription(content["layout"], content["info"], tuple(shards))
    except (KeyError, TypeError) as e:
        raise DatasetError(f"{path / META} is not the description of a graph store. Write the store again.") from e


def shard_path(folder: str | Path, key: str) -> Path:
    """Return the file of a shard in a store."""
    return Path(folder) / SHARDS / f"{key}.safetensors"


def is_store_folder(path: object) -> bool:
    """Return True for the folder of a graph store; see also :func:`is_store`."""
    return isinstance(path, (str, os.PathLike)) and os.path.isfile(os.path.join(path, META))


def check_file_size(path: Path, expected: int) -> None:
    """Raise :class:`DatasetError` if a file is missing or has another number of bytes."""
    try:
        size = path.stat().st_size
    except OSError as e:
        raise DatasetError(f"{path} is missing ({e.strerror}). Write the store again.") from e
    if size != expected:
        raise DatasetError(f"{path} has {size} bytes, not {expected}. Write the store again.")


def register_stored_field(path: Path | str, name: str, stored: FieldSpec) -> None:
    """Register a field that the field table lacks; raise :class:`DatasetError` if it defines it otherwise."""
    if not is_registered(name):
        register_field(stored)
        return
    now = registered_field(name)
    for part in ("level", "irreps", "dtype", "unit", "shape", "classes"):
        was, is_ = getattr(stored, part), getattr(now, part)
        if was != is_:
            raise DatasetError(f"{path}: field {name!r} had {part} {was!r}, now it is {is_!r}. Write the store again.")


_ADDRESS = re.compile(r"([a-z][a-z0-9]+):/+(?=[^/])")  # pathlib joins the slashes


class StoreFiles(Protocol):
    """Files of one graph store."""

    @property
    def path(self) -> Path | str:
        """Folder, or address."""
        ...

    @property
    def index(self) -> Path:
        """Local file that changes when the store is written again."""
        ...

    def describe(self) -> StoreDescription:
        """Return the description of the store; raise :class:`DatasetError` if shards are missing or incomplete."""
        ...

    def shard_files(self, shards: Sequence[ShardEntry]) -> list[Path]:
        """Return the local file of each shard."""
        ...


class FolderFiles:
    """Files of a folder; see :class:`StoreFiles`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
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
    if not isinstance(path, str | os.PathLike):
        return None
    text = os.fspath(path)
    match = _ADDRESS.match(text)
    if match is None or match[1] not in stores:
        return None
    return f"{match[1]}://{text[match.end() :]}"


@lru_cache(maxsize=16)
def _remote_files(address: str) -> StoreFiles:
    return stores.get(address.partition(":")[0])(address)
