"""BinaryCIF: unpack the categories that a structure needs and decode their columns with NumPy.

A BinaryCIF file is one MessagePack map of blocks, categories and columns. Of about sixty categories of a PDB entry a
structure needs four; unpacking all of them takes ten times as long. A column is decoded when it is read.

References
----------
Sehnal et al. 2020, doi:10.1371/journal.pcbi.1008247, and the BinaryCIF specification 0.3.
"""

# Not biotite: it decodes, filters and copies column by column, 3 times the time (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgpack
import numpy as np

from protgraph.structure.io.cif_column import ColumnValues, canonical_name

__all__ = ["BinaryBlock", "BinaryTable", "decode_column", "unpack_categories"]

_KINDS = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<u1", 5: "<u2", 6: "<u4", 32: "<f4", 33: "<f8"}
_TYPES = {number: np.dtype(kind) for number, kind in _KINDS.items()}
_INTEGER = np.dtype("<i4")

_NO_TEXT = np.array([""])
_FEW = 8  # extreme values of packed integers that are summed faster one by one
_LIMITS = {kind: (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in ("i1", "i2", "i4", "u1", "u2", "u4")}
_EXTREMES = {"i1": (b"\x7f", b"\x80"), "u1": (b"\xff",)}  # of types of one byte, which bytes finds faster than NumPy


# --- categories ---------------------------------------------------------------------------------------------------


def unpack_categories(content: bytes, names: Collection[str]) -> dict[str, Any]:
    """Unpack the MessagePack of a BinaryCIF file, with columns for the named categories only.

    ``names``: categories to keep, e.g. "_atom_site".
    """
    stream = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=len(content))
    stream.feed(content)
    try:
        file = _read_map(stream, {"dataBlocks": lambda: _read_list(stream, lambda: _read_block(stream, names))})
    except msgpack.OutOfData as e:
        raise ValueError(f"MessagePack data are cut off after {len(content)} bytes") from e
    if stream.tell() != len(content):
        raise ValueError(f"{len(content) - stream.tell()} bytes after the end of the MessagePack data")
    return file


def _read_block(stream: msgpack.Unpacker, names: Collection[str]) -> dict[str, Any]:
    readers = {"categories": lambda: _read_list(stream, lambda: _read_category(stream, names))}
    block = _read_map(stream, readers)
    block["categories"] = [category for category in block["categories"] if category["name"] in names]
    return block


def _read_category(stream: msgpack.Unpacker, names: Collection[str]) -> dict[str, Any]:
    category: dict[str, Any] = {}
    for _ in range(stream.read_map_header()):
        key = stream.unpack()
        is_skipped = "name" in category and category["name"] not in names  # unknown while the columns come first
        if key == "columns" and is_skipped:
            stream.skip()
        else:
            category[key] = stream.unpack()
    return category


def _read_map(stream: msgpack.Unpacker, readers: dict[str, Any]) -> dict[str, Any]:
    """Read a map; ``readers`` has the functions that read the values of some keys."""
    items = {}
    for _ in range(stream.read_map_header()):
        key = stream.unpack()
        items[key] = readers.get(key, stream.unpack)()
    return items


def _read_list(stream: msgpack.Unpacker, read: Callable[[], Any]) -> list[Any]:
    return [read() for _ in range(stream.read_array_header())]


# --- encodings of a column ----------------------------------------------------------------------------------------


def decode_column(data: bytes, encodings: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Decode the values of a column.

    Returns ``(rows,)``, dtype by the encodings. It may be read-only.

    Examples
    --------
    >>> packed = {"kind": "IntegerPacking", "byteCount": 1, "isUnsigned": False, "srcSize": 3}
    >>> decode_column(bytes([1, 127, 1, 2]), [packed, {"kind": "ByteArray", "type": 1}]).tolist()
    [1, 128, 2]
    """
    values = _decode(data, encodings)
    if encodings and encodings[0]["kind"] == "IntegerPacking":
        values = values.astype(_INTEGER, copy=False)
    return values


def _decode(data: bytes, encodings: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return the values of :func:`decode_column`; packed integers may have the narrower type of the file."""
    values: Any = data
    for encoding in reversed(encodings):
        values = _DECODERS[encoding["kind"]](values, encoding)
    return values


def _byte_array(data: bytes, e: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(data, _TYPES[e["type"]])


def _fixed_point(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    values = data / float(e["factor"])
    return values.astype(_TYPES[e["srcType"]], copy=False)


def _interval_quantization(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    width = float(e["max"] - e["min"])
    num_intervals = e["numSteps"] - 1
    values = data * width / num_intervals
    return values.astype(_TYPES[e["srcType"]], copy=False) + e["min"]


def _run_length(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    """Expand pairs of a value and its number of repeats."""
    if len(data) == 2:  # a constant
        num_repeats = max(int(data[1]), 0)
        values = np.empty(num_repeats, _TYPES[e["srcType"]])
        values.fill(data[0])
    else:
        values = data[::2].repeat(data[1::2])
        values = values.astype(_TYPES[e["srcType"]], copy=False)
    return _check_size(values, e)


def _delta(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    return np.cumsum(data, dtype=_TYPES[e["srcType"]]) + e["origin"]


def _integer_packing(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    """Sum each run of extreme values (smallest or largest of the type) with the value that ends it."""
    kind = data.dtype.str[1:]
    content = data.base
    if kind in _EXTREMES and isinstance(content, bytes):
        has_extreme = any(value in content for value in _EXTREMES[kind])
        if not has_extreme:
            return _check_size(data, e)

    low, high = _LIMITS[kind]
    is_extreme = data == high
    if low < 0:
        is_extreme |= data == low
    extreme = is_extreme.nonzero()[0]
    if len(extreme) == 0:
        return _check_size(data, e)

    # sums modulo 2³²
    if len(extreme) <= _FEW and extreme[-1] < len(data) - 1:
        values = data.astype(_INTEGER)
        for i in extreme.tolist():
            values[i + 1] += values[i]
        return _check_size(np.delete(values, extreme), e)
    sums = np.cumsum(data, dtype=np.int64)
    values = sums[~is_extreme].astype(_INTEGER)
    values[1:] -= values[:-1].copy()
    return _check_size(values, e)


def _string_array(data: bytes, e: Mapping[str, Any]) -> np.ndarray:
    """Look up strings by index."""
    strings, index = _indexed_strings(data, e)
    return strings.take(index)


def _indexed_strings(data: bytes, e: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return strings, which are slices of one string, and the index of each row; −1 is the last one, ""."""
    text = e["stringData"]
    bounds = _decode(e["offsets"], e["offsetEncoding"]).tolist()
    slices = [text[start:end] for start, end in pairwise(bounds)]
    strings = np.array([*slices, ""], dtype="U")
    index = _decode(data, e["dataEncoding"])
    if index.dtype.kind != "u" and len(index) and index.min() < -1:
        raise ValueError(f"string index {index.min()} is below -1")
    return strings, index


def _check_size(values: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    if len(values) != e["srcSize"]:
        raise ValueError(f"{len(values)} decoded values; srcSize is {e['srcSize']}")
    return values


_DECODERS: dict[str, Callable[[Any, Mapping[str, Any]], np.ndarray]] = {
    "ByteArray": _byte_array,
    "FixedPoint": _fixed_point,
    "IntervalQuantization": _interval_quantization,
    "RunLength": _run_length,
    "Delta": _delta,
    "IntegerPacking": _integer_packing,
    "StringArray": _string_array,
}


# --- categories as tables -----------------------------------------------------------------------------------------


class BinaryTable:
    """A category of BinaryCIF; a column is decoded when it is read.

    ``category``: an element of ``categories`` in the result of :func:`unpack_categories`.
    """

    def __init__(self, category: Mapping[str, Any]) -> None:
        self._columns = {canonical_name(column["name"]): column for column in category["columns"]}
        self.names = tuple(self._columns)
        self.size = category["rowCount"]

    def column(self, name: str, rows: slice | np.ndarray = slice(None)) -> ColumnValues:
        """Return some rows of a column: a slice, or ``(R,)`` indices or mask."""
        data = self._columns[name]["data"]
        mask = self._columns[name].get("mask")
        is_masked: np.ndarray | None = None
        if mask is not None:
            is_masked = _decode(mask["data"], mask["encoding"])
            if not is_masked.any():
                is_masked = None

        encodings = data["encoding"]
        is_text = len(encodings) == 1 and encodings[0]["kind"] == "StringArray"
        if is_text:
            if is_masked is not None and is_masked.all():  # texts under the mask are not used
                column = ColumnValues(_NO_TEXT, is_masked, np.zeros(len(is_masked), np.int8))
            else:
                values, index = _indexed_strings(data["data"], encodings[0])
                column = ColumnValues(values, is_masked, index)
        else:
            column = ColumnValues(_decode(data["data"], encodings), is_masked)
        if len(column) != self.size:
            raise ValueError(f"{len(column)} values of {name}; rowCount is {self.size}")
        return column.select(rows)


class BinaryBlock:
    """A data block of BinaryCIF.

    ``block``: an element of ``dataBlocks`` in the result of :func:`unpack_categories`.
    """

    def __init__(self, block: Mapping[str, Any]) -> None:
        self.name = block["header"]
        tables = {canonical_name(c["name"].removeprefix("_")): BinaryTable(c) for c in block["categories"]}
        self.tables: Mapping[str, BinaryTable] = tables

    def get(self, category: str) -> BinaryTable | None:
        """Return a category; None if the block does not have it, or it was not unpacked."""
        return self.tables.get(category)
