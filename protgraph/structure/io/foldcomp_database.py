"""Foldcomp databases: entries by name in constant time, and in the order of the file, from memory-mapped tables.

A database ``db`` has the files ``db`` (entries), ``db.index`` (number, place and length of each) and ``db.lookup``
(number and name). They are read once; the tables of all entries and a hash index of their names are kept in the cache
folder, about 40 bytes per entry, so that every process opens a large database at once.

Not foldcomp.open: it reads both tables at each start, in 24 bytes and a string per entry, and finds names by bisection
(foldcomp 1.0.0, 2026-11-22).
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from protgraph.errors import SelectionError, StructureFileError
from protgraph.file_io import atomic_write
from protgraph.structure.io.foldcomp import MAGIC
from protgraph.structure.io.foldcomp_tables import TABLES, find_bucket, read_database_tables
from protgraph.structure.io.transfer import cache_dir

__all__ = ["FoldcompDatabase", "entry_name", "is_foldcomp_database", "open_foldcomp_database", "split_entry"]

_VERSION = 1  # of the tables


def is_foldcomp_database(path: str | os.PathLike[str]) -> bool:
    """Return True for a file with an index and a lookup table beside it."""
    text = os.fspath(path)
    return os.path.isfile(f"{text}.index") and os.path.isfile(f"{text}.lookup") and os.path.isfile(text)


def split_entry(source: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Return the database and the name of "db:name"; None for everything else.

    Names may have colons; the database is the shortest part in front of a colon that is one.
    """
    text = os.fspath(source)
    place = text.find(":")
    while place > 0:
        if place + 1 < len(text) and is_foldcomp_database(text[:place]):
            return text[:place], text[place + 1 :]
        place = text.find(":", place + 1)
    return None


def entry_name(source: str | os.PathLike[str]) -> str:
    """Return the name of an entry of "db:name", or the file name of any other path."""
    entry = split_entry(source)
    return os.path.basename(source) if entry is None else entry[1]


def open_foldcomp_database(path: str | os.PathLike[str]) -> FoldcompDatabase:
    """Open a database, once per process as long as its files do not change.

    Raises
    ------
    StructureFileError
        The files do not form a database of foldcomp entries.
    OutputFileError
        The tables cannot be written to the cache folder.
    """
    return _open(os.fspath(path), _stamps(path))


@functools.lru_cache(maxsize=8)
def _open(path: str, stamps: tuple[int, ...]) -> FoldcompDatabase:
    return FoldcompDatabase(path)


def _stamps(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return size and modification time of each file of a database."""
    stats = [os.stat(f"{os.fspath(path)}{suffix}") for suffix in ("", ".index", ".lookup")]
    return tuple(value for stat in stats for value in (stat.st_size, stat.st_mtime_ns))


class FoldcompDatabase(Sequence[str]):
    """Names of the entries of a database, in the order of the file, and their content by name.

    An entry whose name occurs several times, e.g. for the chains of one file, is called "name@number", with its number
    in ``db.index``.

    Parameters
    ----------
    path : str or PathLike
        File of the entries, without the suffix .index.
    cache : str or Path, optional
        Folder for the tables; see :func:`protgraph.structure.io.cache_dir`.

    Raises
    ------
    StructureFileError
        The files do not form a database of foldcomp entries.
    OutputFileError
        The tables cannot be written.

    Notes
    -----
    ``db[0]`` is the name of the first entry, and ``db.read(name)`` returns its bytes::

        db = FoldcompDatabase("afdb_swissprot_v4")
        content = db.read(db[0])
    """

    def __init__(self, path: str | os.PathLike[str], *, cache: str | Path | None = None) -> None:
        self.path = os.fspath(path)
        folder = self._tables(cache_dir(cache) / "foldcomp")
        for name in TABLES:
            table = np.load(folder / f"{name}.npy", mmap_mode="r")
            setattr(self, f"_{name}", table.view(np.ndarray))  # np.memmap takes 5 times as long for one element
        self._names = _map(f"{self.path}.lookup")
        self._entries = _map(self.path)
        if len(self) and not self._content(0).startswith(MAGIC):
            raise StructureFileError(
                f"{self.path}: the first entry begins {self._content(0)[:8]!r}. Allowed: databases of foldcomp, whose "
                f"entries begin {MAGIC!r}."
            )

    def __repr__(self) -> str:
        return f"FoldcompDatabase({self.path!r}, {len(self)} entries)"

    def __len__(self) -> int:
        return len(self._start)

    def __getitem__(self, index: int) -> str:
        """Return the name of an entry by its place in the file."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"entry {index} of {len(self)} in {self.path}")
        name = self._name(index)
        return f"{name}@{self._key[index]}" if self._is_repeated[index] else name

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def read(self, name: str) -> bytes:
        """Return the content of an entry.

        Raises
        ------
        SelectionError
            The database has no entry of this name, or several.
        StructureFileError
            The entry is beyond the end of the file.
        """
        index = self._find(name)
        if index is None:
            raise self._absent(name)
        return self._content(index)

    def size_of(self, name: str) -> int | None:
        """Return the bytes of an entry from the index; None if there is no entry of this name."""
        index = self._find(name)
        return None if index is None else int(self._length[index])

    def _content(self, index: int) -> bytes:
        start, length = int(self._start[index]), int(self._length[index])
        if start < 0 or length < 1 or start + length > len(self._entries):
            raise StructureFileError(
                f"{self.path}: entry {self[index]!r} is at bytes {start} to {start + length} of {len(self._entries)}. "
                "The file is cut off, or the index belongs to another one. Download both again."
            )
        return self._entries[start : start + length].removesuffix(b"\0")

    def _name(self, index: int) -> str:
        start = int(self._name_start[index])
        return self._names[start : start + int(self._name_length[index])].decode("utf-8", "replace")

    def _find(self, name: str) -> int | None:
        """Return the place of an entry; None if the name is absent, or repeated and without a number."""
        found = self._matches(name)
        if len(found) == 1:
            return found[0]
        stem, mark, number = name.rpartition("@")
        if not (mark and number.isdecimal()):
            return None
        return next((i for i in self._matches(stem) if self._is_repeated[i] and self._key[i] == int(number)), None)

    def _matches(self, name: str) -> list[int]:
        if not len(self):
            return []
        bucket = find_bucket(name.encode("utf-8"), len(self._bucket) - 1)
        rows = self._order[self._bucket[bucket] : self._bucket[bucket + 1]].tolist()
        return [row for row in rows if self._name(row) == name]

    def _absent(self, name: str) -> SelectionError:
        repeated = self._matches(name)
        if repeated:
            listed = ", ".join(repr(self[i]) for i in repeated[:8])
            return SelectionError(
                f"{self.path}: {name!r} is the name of {len(repeated)} entries. Give one of {listed}."
            )
        close = next((variant for variant in _variants(name) if variant in self), "")
        hint = f" Did you mean {close!r}?" if close else ""
        first = f", the first {self[0]!r}" if len(self) else ""
        return SelectionError(f"{self.path}: no entry {name!r} among {len(self)}{first}.{hint}")

    def _tables(self, cache: Path) -> Path:
        """Return the folder of the tables; create it if it does not exist."""
        where = [_VERSION, os.path.abspath(self.path), *_stamps(self.path)]
        folder = cache / hashlib.sha256(repr(where).encode()).hexdigest()[:24]
        if folder.is_dir():
            return folder
        from filelock import FileLock

        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{folder.name}.lock"):
            if not folder.is_dir():  # written by another process in the meantime
                tables = read_database_tables(self.path)
                with atomic_write(folder, folder=True) as temporary:
                    for name, table in tables.items():
                        np.save(temporary / f"{name}.npy", table, allow_pickle=False)
        return folder


def _variants(name: str) -> list[str]:
    """Return names that databases give to an entry that a user calls ``name``, e.g. by its UniProt accession."""
    versions = [f"-model_v{version}" for version in (6, 5, 4)]
    ends = [f"{part}{version}" for part in ("", "-F1") for version in ("", *versions)]
    return [f"{begin}{name}{end}" for begin in ("", "AF-") for end in (*ends, ".cif.gz", ".pdb.gz")]


def _map(path: str) -> mmap.mmap | bytes:
    """Return the content of a file, memory-mapped; mmap refuses empty files."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(path) else b""
