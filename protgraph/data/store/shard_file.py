"""Files of named arrays that are mapped into memory: the shards of a graph store, in the format safetensors.

Not safetensors.numpy (0.8.0, 2026-11-22): ``save_file`` copies every array before it writes, and ``safe_open`` copies
what it reads. The files can be read with it, except that strings are arrays of code points.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protgraph.errors import DatasetError
from protgraph.file_io import atomic_write

__all__ = ["ShardFile", "map_shard_file", "write_shard_file"]

_DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "I16": "<i2",
    "U16": "<u2",
    "F16": "<f2",
    "I32": "<i4",
    "U32": "<u4",
    "F32": "<f4",
    "I64": "<i8",
    "U64": "<u8",
    "F64": "<f8",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_TEXTS = "text."  # prefix of the plain data, as UTF-8 JSON
_STRINGS = "strings"


class ShardFile:
    """Arrays and plain data of one file; nothing is read before it is used.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Of any shape; memory-mapped, copy-on-write: nothing can write to the file.
    texts : dict of str to ndarray
        ``(bytes,)`` uint8 each, plain data as UTF-8 JSON.
    """

    def __init__(self, arrays: dict[str, np.ndarray], texts: dict[str, np.ndarray]) -> None:
        self.arrays, self._texts = arrays, texts

    def plain(self, name: str) -> Any:
        """Return plain data; they are parsed at each call."""
        return json.loads(self._texts[name].tobytes())


def write_shard_file(path: str | Path, arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> tuple[str, int]:
    """Write arrays and plain data to a file, atomically; the same content gives the same bytes."""
    strings = {name: array.dtype.str for name, array in arrays.items() if array.dtype.kind == "U"}
    parts = {name: _codes(array) if name in strings else array for name, array in arrays.items()}
    for name, value in ({_STRINGS: strings} | dict(plain)).items():
        parts[_TEXTS + name] = np.frombuffer(json.dumps(value).encode(), np.uint8)
    names = sorted(parts, key=lambda name: (-parts[name].dtype.itemsize, name))  # each array is aligned
    header, end = {}, 0
    for name in names:
        part = parts[name]
        begin, end = end, end + part.nbytes
        header[name] = {"dtype": _NAMES[part.dtype.str], "shape": list(part.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    checksum = hashlib.sha256()
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        for block in (len(text).to_bytes(8, "little"), text, *(_bytes(parts[name]) for name in names)):
            checksum.update(block)
            file.write(block)
    return checksum.hexdigest(), 8 + len(text) + end


def map_shard_file(path: str | Path) -> ShardFile:
    """Map the file of :func:`write_shard_file` into memory; no file stays open."""
    path = Path(path)
    try:
        size = path.stat().st_size
        # not np.memmap: each map would keep its file open, and processes may open 1024 files
        whole = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8).numpy()
        start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
        header = json.loads(whole[8:start].tobytes())
        parts = {name: _array(whole, start, entry) for name, entry in header.items() if name != "__metadata__"}
        texts = {name.removeprefix(_TEXTS): parts.pop(name) for name in list(parts) if name.startswith(_TEXTS)}
        strings = json.loads(texts[_STRINGS].tobytes())
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DatasetError(f"{path} is missing or incomplete. Write the store again.") from e
    parts |= {name: parts[name].view(dtype)[..., 0] for name, dtype in strings.items()}
    return ShardFile(parts, texts)


def _array(whole: np.ndarray, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    begin, end = entry["data_offsets"]
    return whole[start + begin : start + end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])


def _codes(strings: np.ndarray) -> np.ndarray:
    """Return the ``(…, W)`` uint32 code points of strings: safetensors has no type for strings."""
    strings = np.ascontiguousarray(strings)
    width = strings.dtype.itemsize // 4
    return np.frombuffer(strings.tobytes(), "<u4").reshape(*strings.shape, width)


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
