"""The categories of a BinaryCIF file that are asked for; the others are passed over unread.

A BinaryCIF file is one MessagePack map of blocks, categories and columns. Of the some sixty categories of a PDB entry
a structure needs four; unpacking all of them takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgpack

__all__ = ["unpack_categories"]


def unpack_categories(content: bytes, names: Collection[str]) -> dict[str, Any]:
    """The decoded MessagePack of a BinaryCIF file, with columns for the named categories only.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    names : collection of str
        Categories to keep, "_atom_site" say.

    Returns
    -------
    dict
        As :meth:`biotite.structure.io.pdbx.BinaryCIFFile.deserialize` takes it.

    Raises
    ------
    ValueError
        Where the content is cut off, or goes on after its end, or is no BinaryCIF.

    Notes
    -----
    See Sehnal et al. 2020, doi:10.1371/journal.pcbi.1008247, and the BinaryCIF specification 0.3 for the layout.
    """
    stream = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=len(content))
    stream.feed(content)
    try:
        file = _map(stream, {"dataBlocks": lambda: _list(stream, lambda: _block(stream, names))})
    except msgpack.OutOfData as e:
        raise ValueError("the MessagePack data are cut off") from e
    if stream.tell() != len(content):
        raise ValueError(f"{len(content) - stream.tell()} bytes after the end of the MessagePack data")
    return file


def _block(stream: msgpack.Unpacker, names: Collection[str]) -> dict[str, Any]:
    found = _map(stream, {"categories": lambda: _list(stream, lambda: _category(stream, names))})
    return {**found, "categories": [category for category in found["categories"] if category["name"] in names]}


def _category(stream: msgpack.Unpacker, names: Collection[str]) -> dict[str, Any]:
    category: dict[str, Any] = {}
    for _ in range(stream.read_map_header()):
        key = stream.unpack()
        if key == "columns" and category.get("name", next(iter(names))) not in names:
            stream.skip()
        else:
            category[key] = stream.unpack()
    return category


def _map(stream: msgpack.Unpacker, readers: dict[str, Any]) -> dict[str, Any]:
    """A map of which some values are read by functions of their own."""
    found = {}
    for _ in range(stream.read_map_header()):
        key = stream.unpack()
        found[key] = readers.get(key, stream.unpack)()
    return found


def _list(stream: msgpack.Unpacker, read: Any) -> list[Any]:
    return [read() for _ in range(stream.read_array_header())]
