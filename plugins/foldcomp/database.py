"""Foldcomp databases: entries by name, and in the order of the file.

A database ``db`` has the files ``db`` (entries), ``db.index`` (number, place and length of each) and ``db.lookup``
(number and name). The two tables are read once, into a SQLite file in the cache folder that every process opens at
once.

Not foldcomp.open: it reads both tables at each start, in 24 bytes and a string per entry, and finds names by bisection
(foldcomp 1.0.0, 2026-11-22).
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from protgraph_plugins.foldcomp.entry import MAGIC

from protgraph.errors import SelectionError, StructureFileError
from protgraph.file_io import atomic_write
from protgraph.structure.io import cache_dir

__all__ = ["FILES", "FoldcompDatabase", "open_foldcomp_database"]

FILES = ("", ".index", ".lookup", ".dbtype", ".source")
"""Suffixes of the files of a database; the last two may be absent."""

_TABLES = ("", ".index", ".lookup")
_VERSION = 2  # of the cached index


def open_foldcomp_database(path: str | os.PathLike[str]) -> FoldcompDatabase:
    """Open a database, once per process as long as its files do not change.

    Raises
    ------
    StructureFileError
        The files do not form a database of foldcomp entries.
    OutputFileError
        The index cannot be written to the cache folder.
    """
    return _open(os.fspath(path), _stamps(path))


@functools.lru_cache(maxsize=8)
def _open(path: str, stamps: tuple[int, ...]) -> FoldcompDatabase:
    return FoldcompDatabase(path)


def _stamps(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return size and modification time of each file of a database."""
    stats = [os.stat(f"{os.fspath(path)}{suffix}") for suffix in _TABLES]
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
        Folder for the index; see :func:`protgraph.structure.io.cache_dir`.

    Raises
    ------
    StructureFileError
        The files do not form a database of foldcomp entries.
    OutputFileError
        The index cannot be written.

    Notes
    -----
    ``db[0]`` is the name of the first entry, and ``db.read(name)`` returns its bytes::

        db = FoldcompDatabase("afdb_swissprot_v4")
        content = db.read(db[0])
    """

    def __init__(self, path: str | os.PathLike[str], *, cache: str | Path | None = None) -> None:
        self.path = os.fspath(path)
        self._index = self._cached_index(cache_dir(cache) / "foldcomp")
        self._connections = threading.local()
        ((self._length,),) = self._rows("SELECT coalesce(max(place) + 1, 0) FROM entry")
        self._entries = _map(self.path)
        if len(self) and not self._content(0).startswith(MAGIC):
            raise StructureFileError(
                f"{self.path}: the first entry begins {self._content(0)[:8]!r}. Allowed: databases of foldcomp, whose "
                f"entries begin {MAGIC!r}."
            )

    def __repr__(self) -> str:
        return f"FoldcompDatabase({self.path!r}, {len(self)} entries)"

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> str:
        """Return the name of an entry by its place in the file."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"entry {index} of {len(self)} in {self.path}")
        ((name,),) = self._rows(f"SELECT {_SHOWN} FROM entry WHERE place = ?", index % len(self))
        return name

    def __iter__(self) -> Iterator[str]:
        return (name for (name,) in self._rows(f"SELECT {_SHOWN} FROM entry ORDER BY place"))

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
        number = self._find(name)
        if number is None:
            raise self._absent(name)
        return self._content(number)

    def size_of(self, name: str) -> int | None:
        """Return the bytes of an entry from the index; None if there is no entry of this name."""
        number = self._find(name)
        if number is None:
            return None
        ((length,),) = self._rows("SELECT length FROM entry WHERE place = ?", number)
        return length

    def _content(self, number: int) -> bytes:
        ((start, length),) = self._rows("SELECT start, length FROM entry WHERE place = ?", number)
        if start < 0 or length < 1 or start + length > len(self._entries):
            raise StructureFileError(
                f"{self.path}: entry {self[number]!r} is at bytes {start} to {start + length} of {len(self._entries)}. "
                "The file is cut off, or the index belongs to another one. Download both again."
            )
        return self._entries[start : start + length].removesuffix(b"\0")

    def _find(self, name: str) -> int | None:
        """Return the place of an entry; None if the name is absent, or repeated and without a number."""
        places = list(self._rows("SELECT place FROM entry WHERE name = ? LIMIT 2", name))
        if len(places) != 1:
            stem, mark, number = name.rpartition("@")
            if not (mark and number.isdecimal()):
                return None
            query = "SELECT place FROM entry WHERE name = ? AND key = ? AND is_repeated"
            places = list(self._rows(query, stem, int(number)))
        return places[0][0] if places else None

    def _absent(self, name: str) -> SelectionError:
        repeated = [shown for (shown,) in self._rows(f"SELECT {_SHOWN} FROM entry WHERE name = ? ORDER BY place", name)]
        if repeated:
            listed = ", ".join(map(repr, repeated[:8]))
            return SelectionError(
                f"{self.path}: {name!r} is the name of {len(repeated)} entries. Give one of {listed}."
            )
        close = next((variant for variant in _variants(name) if variant in self), "")
        hint = f" Did you mean {close!r}?" if close else ""
        first = f", the first {self[0]!r}" if len(self) else ""
        return SelectionError(f"{self.path}: no entry {name!r} among {len(self)}{first}.{hint}")

    def _rows(self, query: str, *values: object) -> Iterator[tuple]:
        """Run a query on the connection of this thread and process: one of a fork's parent must not be used."""
        connections = self._connections.__dict__
        if os.getpid() not in connections:
            connections[os.getpid()] = sqlite3.connect(f"{self._index.as_uri()}?mode=ro&immutable=1", uri=True)
        return connections[os.getpid()].execute(query, values)

    def _cached_index(self, cache: Path) -> Path:
        """Return the SQLite file of the entries; create it if it does not exist."""
        where = [_VERSION, os.path.abspath(self.path), *_stamps(self.path)]
        file = cache.absolute() / f"{hashlib.sha256(repr(where).encode()).hexdigest()[:24]}.sqlite"
        if file.is_file():
            return file
        from filelock import FileLock

        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            if not file.is_file():  # written by another process in the meantime
                with atomic_write(file) as temporary:
                    _write_index(self.path, temporary)
        return file


#: Name of an entry, with its number if other entries have the name.
_SHOWN = "CASE WHEN is_repeated THEN name || '@' || key ELSE name END"

_CREATE = """
CREATE TABLE entry (place INTEGER PRIMARY KEY, key INTEGER, start INTEGER, length INTEGER, name TEXT, is_repeated);
CREATE TEMP TABLE position (line INTEGER PRIMARY KEY, key INTEGER UNIQUE, start INTEGER, length INTEGER);
CREATE TEMP TABLE lookup (key INTEGER PRIMARY KEY, name TEXT);
"""
_FILL = """
INSERT INTO entry
    SELECT row_number() OVER (ORDER BY start, line) - 1, key, start, length, name, 0
    FROM position JOIN lookup USING (key);
CREATE INDEX entry_of_name ON entry (name);
UPDATE entry SET is_repeated = 1 WHERE name IN (SELECT name FROM entry GROUP BY name HAVING count(*) > 1);
"""


def _write_index(path: str, file: Path) -> None:
    """Write the entries of a database to a SQLite file, in the order of the file of entries.

    Raises
    ------
    StructureFileError
        A line of the tables cannot be parsed, numbers are repeated, or an entry has no name.
    """
    with closing(sqlite3.connect(file)) as connection:
        # the file is renamed when it is complete, so no journal is needed
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_CREATE}")
        try:
            connection.executemany("INSERT INTO position (key, start, length) VALUES (?, ?, ?)", _read_index(path))
        except sqlite3.IntegrityError as e:
            raise StructureFileError(f"{path}.index: two entries have the same number. Numbers are unique.") from e
        connection.executemany("INSERT OR IGNORE INTO lookup VALUES (?, ?)", _read_lookup(path))
        query = "SELECT count(*), min(key) FROM position WHERE key NOT IN (SELECT key FROM lookup)"
        missing, key = connection.execute(query).fetchone()
        if missing:
            ((total,),) = connection.execute("SELECT count(*) FROM position")
            raise StructureFileError(
                f"{path}.lookup: no name for {missing} of {total} entries of the index, e.g. {key}. Download both "
                "tables of the database again."
            )
        connection.executescript(_FILL)


def _read_index(path: str) -> Iterator[tuple[int, int, int]]:
    """Yield number, first byte and length of each entry."""
    with open(f"{path}.index", "rb") as lines:
        for line in filter(bytes.strip, lines):
            try:
                key, start, length = map(int, line.split(b"\t"))
            except ValueError as e:
                raise StructureFileError(f"{path}.index: not an index of three numbers per line ({e})") from e
            yield key, start, length


def _read_lookup(path: str) -> Iterator[tuple[int, str]]:
    """Yield number and name of each line "number, tab, name, tab, set"."""
    begin = 0
    with open(f"{path}.lookup", "rb") as lines:
        for line in lines:
            columns = line.split(b"\t")
            if len(columns) != 3:
                raise StructureFileError(
                    f"{path}.lookup: bytes from {begin}: not lines of number, name and set, separated by tabs"
                )
            if not columns[0].isdigit():
                raise StructureFileError(f"{path}.lookup: bytes from {begin}: a line does not begin with a number")
            yield int(columns[0]), columns[1].decode("utf-8", "replace")
            begin += len(line)


def _variants(name: str) -> list[str]:
    """Return names that databases give to an entry that a user calls ``name``, e.g. by its UniProt accession."""
    versions = [f"-model_v{version}" for version in (6, 5, 4)]
    ends = [f"{part}{version}" for part in ("", "-F1") for version in ("", *versions)]
    return [f"{begin}{name}{end}" for begin in ("", "AF-") for end in (*ends, ".cif.gz", ".pdb.gz")]


def _map(path: str) -> mmap.mmap | bytes:
    """Return the content of a file, memory-mapped; mmap refuses empty files."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(path) else b""
