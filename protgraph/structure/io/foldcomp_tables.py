"""Index and lookup table of a foldcomp database as arrays in the order of the file, with a hash index of the names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from protgraph.errors import StructureFileError

__all__ = ["TABLES", "find_bucket", "read_database_tables"]

TABLES = ("start", "length", "key", "name_start", "name_length", "is_repeated", "order", "bucket")
"""Names of the arrays.

Per entry, in the order of the file: its bytes and its number in ``.index``, the place of its name in ``.lookup``, and
whether another entry has this name. For the hash index: entries sorted by bucket, and the first place of each bucket.
"""

_CHUNK = 2**24  # bytes of .lookup that are parsed at once
_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio
_FACTOR, _WORD = np.uint64(_GOLDEN), 2**64 - 1
_TAB, _NEWLINE, _ZERO = b"\t\n0"


def read_database_tables(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays :data:`TABLES` of a database, ``(P,)`` for P entries, and ``(B + 1,)`` for B buckets.

    Raises
    ------
    StructureFileError
        A line of the tables cannot be parsed, numbers are repeated, or an entry has no name.
    """
    keys, start, length = _read_index(f"{os.fspath(path)}.index")
    name_key, name_start, name_length, name_hash = _read_lookup(f"{os.fspath(path)}.lookup")
    order = np.argsort(start, kind="stable")  # the order of the file
    keys, start, length = keys[order], start[order], length[order]
    sorting = np.argsort(name_key, kind="stable")
    place = np.searchsorted(name_key[sorting], keys)
    found = place < len(name_key)
    found[found] = name_key[sorting[place[found]]] == keys[found]
    if not found.all():
        key = int(keys[~found][0])
        raise StructureFileError(
            f"{path}.lookup: no name for {int((~found).sum())} of {len(keys)} entries of the index, e.g. {key}. "
            "Download both tables of the database again."
        )
    rows = sorting[place]
    tables = {"start": start, "length": length, "key": keys.astype(np.uint32)}
    tables |= {"name_start": name_start[rows], "name_length": name_length[rows]}
    return tables | _hash_index(name_hash[rows])


def find_bucket(name: bytes, buckets: int) -> int:
    """Return the bucket of a name in a hash index of so many buckets."""
    value = len(name) * _GOLDEN & _WORD  # as _hashes, for one name
    for word in range(0, len(name), 8):
        value = (value ^ int.from_bytes(name[word : word + 8], "little")) * _GOLDEN & _WORD
        value ^= value >> 29
    return value >> (65 - buckets.bit_length())


def _read_index(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return number, first byte and length of each entry, int64."""
    try:
        numbers = np.loadtxt(path, np.int64, delimiter="\t") if os.path.getsize(path) else np.zeros(0, np.int64)
        columns = numbers.reshape(-1, 3).T
    except (ValueError, OverflowError) as e:
        raise StructureFileError(f"{path}: not an index of three numbers per line ({e})") from e
    if len(np.unique(columns[0])) < columns.shape[1]:
        raise StructureFileError(f"{path}: two entries have the same number. Numbers are unique.")
    return columns[0], columns[1], columns[2]


def _read_lookup(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return number, place, length and hash of the name of each line."""
    parts = [_parse_lookup(block, begin, path) for block, begin in _blocks(Path(path))]
    if not parts:
        return tuple(np.zeros(0, dtype) for dtype in (np.int64, np.int64, np.uint16, np.uint64))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _blocks(path: Path) -> Iterator[tuple[np.ndarray, int]]:
    """Yield whole lines of a file as bytes, with their place in it."""
    begin, rest = 0, b""
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            end = data.rfind(b"\n") + 1
            if end:
                block = rest + data[:end]
                yield np.frombuffer(block, np.uint8), begin
                begin, rest = begin + len(block), data[end:]
            else:
                rest += data
    if rest:
        yield np.frombuffer(rest + b"\n", np.uint8), begin


def _parse_lookup(block: np.ndarray, begin: int, path: str) -> tuple[np.ndarray, ...]:
    """Parse lines "number, tab, name, tab, set"."""
    ends = np.flatnonzero(block == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    tabs = np.flatnonzero(block == _TAB)
    if len(tabs) != 2 * len(ends) or (tabs[::2] < starts).any() or (tabs[1::2] > ends).any():
        raise StructureFileError(f"{path}: bytes from {begin}: not lines of number, name and set, separated by tabs")
    first, second = tabs[::2], tabs[1::2]
    key = np.zeros(len(ends), np.int64)
    for digit in range(int((first - starts).max(initial=0))):
        inside = starts + digit < first
        value = block[np.where(inside, starts + digit, 0)].astype(np.int64) - _ZERO
        if ((value < 0) | (value > 9))[inside].any():
            raise StructureFileError(f"{path}: bytes from {begin}: a line does not begin with a number")
        key = np.where(inside, 10 * key + value, key)
    length = second - first - 1
    if length.max(initial=0) > np.iinfo(np.uint16).max:
        raise StructureFileError(f"{path}: a name of {length.max()} bytes; at most 65535 are allowed")
    return key, first + 1 + begin, length.astype(np.uint16), _hashes(block, first + 1, length)


def _hashes(text: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each name, 8 bytes at a time."""
    value = length.astype(np.uint64) * _FACTOR
    for word in range(0, int(length.max(initial=0)), 8):
        column = word + np.arange(8)
        inside = column < length[:, None]
        letters = np.where(inside, text[np.where(inside, start[:, None] + column, 0)], 0).astype(np.uint8)
        mixed = (value ^ letters.view("<u8")[:, 0]) * _FACTOR
        value = np.where(length > word, mixed ^ (mixed >> np.uint64(29)), value)
    return value


def _bucket(hashes: np.ndarray, buckets: int) -> np.ndarray:
    """Return the bucket of each hash; ``buckets`` is a power of two, at least 2."""
    return (hashes >> np.uint64(65 - buckets.bit_length())).astype(np.int64)


def _hash_index(hashes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the entries by bucket, and which of them share their hash with another one.

    Names of 64-bit hashes that are equal by chance (one pair in 10⁹ of 2·10⁸ names) count as repeated.
    """
    buckets = 1 << max(1, (len(hashes) - 1).bit_length())
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    same = ranked[1:] == ranked[:-1]
    is_repeated = np.zeros(len(hashes), bool)
    is_repeated[order[1:][same]] = is_repeated[order[:-1][same]] = True
    first = np.searchsorted(_bucket(ranked, buckets), np.arange(buckets + 1))
    small = np.uint32 if len(hashes) < 2**32 else np.int64
    return {"is_repeated": is_repeated, "order": order.astype(small), "bucket": first.astype(small)}
