"""Residues, FASTA records and fingerprints, cached by the bytes of the file, the read options and the reader's code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from protgraph.data.cache_key import code_digest, digest, stamps
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.store.residue_store import residues_from_arrays, residues_to_arrays
from protgraph.file_io import atomic_write
from protgraph.structure.io.fasta import FastaRecord, read_fasta
from protgraph.structure.io.foldcomp_database import split_entry
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sniff import FileContent, read_file
from protgraph.structure.io.sources import read_residues
from protgraph.structure.residues.residues import Residues

__all__ = ["FileCache"]


class FileCache:
    """Cache of protein files; a file is opened again only if its size or modification time changes.

    Parameters
    ----------
    folder : str or Path
        Folder of the cache; see :func:`protgraph.structure.io.cache_dir`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def fingerprint(self, path: Path, read: ReadOptions | None = None) -> Fingerprint:
        """Return the checksum and the sequences of a file, with residues read by ``read``."""
        read = read or ReadOptions()
        key = digest(_stamps(path), read.to_dict(), code_digest("protgraph.structure"))
        entry = self.folder / "contents" / key[:2] / f"{key}.json"
        try:
            return Fingerprint.from_dict(json.loads(entry.read_text("utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # missing or damaged
        fingerprint = fingerprint_file(path, read=lambda file: self._parse(file, read))
        with atomic_write(entry) as temporary:
            temporary.write_text(json.dumps(asdict(fingerprint)), encoding="utf-8")
        return fingerprint

    def open(self, path: Path, read: ReadOptions) -> tuple[Callable[[], Residues | list[FastaRecord]], str]:
        """Return a function that parses the file, unless it is in the cache, and the SHA-256 of the file.

        The function returns the residues of a structure file or the records of a FASTA file, and raises as
        :func:`protgraph.structure.load_structure` and :func:`protgraph.structure.io.read_fasta` do.

        Raises
        ------
        StructureFileError
            The file cannot be read.
        """
        record = self._record(path)
        try:
            sha256 = json.loads(record.read_text("utf-8"))["sha256"]
        except (OSError, ValueError, TypeError, KeyError):
            sha256 = ""
        if sha256 and (parsed := self._cached(Path(path), sha256, read)) is not None:
            return lambda: parsed, sha256
        file = read_file(path)
        return lambda: self._parse(file, read), file.sha256

    def _parse(self, file: FileContent, read: ReadOptions) -> Residues | list[FastaRecord]:
        path = Path(file.path)
        with atomic_write(self._record(path)) as temporary:
            temporary.write_text(json.dumps({"sha256": file.sha256}), encoding="utf-8")
        if (parsed := self._cached(path, file.sha256, read)) is not None:
            return parsed
        if file.format == "fasta":
            records = read_fasta(file)
            with atomic_write(self._fasta_entry(file.sha256)) as temporary:
                temporary.write_text(json.dumps([vars(record) for record in records]), encoding="utf-8")
            return records
        residues = read_residues(file, read)
        arrays, plain = residues_to_arrays(residues)
        arrays["plain"] = np.array(json.dumps(plain))
        with atomic_write(self._entry(path, file.sha256, read)) as temporary, temporary.open("wb") as target:
            np.savez(target, allow_pickle=False, **arrays)
        return residues

    def _cached(self, path: Path, sha256: str, read: ReadOptions) -> Residues | list[FastaRecord] | None:
        if (records := self._cached_records(path, sha256)) is not None:
            return records
        entry = self._entry(path, sha256, read)
        if not entry.is_file():
            return None
        try:
            with np.load(entry, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return residues_from_arrays(arrays, json.loads(str(arrays.pop("plain"))))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # damaged; it is read again

    def _cached_records(self, path: Path, sha256: str) -> list[FastaRecord] | None:
        try:
            records = json.loads(self._fasta_entry(sha256).read_text("utf-8"))
            return [
                FastaRecord(**{**record, "path": str(path), "lines": tuple(map(tuple, record["lines"]))})
                for record in records
            ]
        except (OSError, ValueError, TypeError, KeyError):
            return None  # not a FASTA file, or damaged; it is read again

    def _fasta_entry(self, sha256: str) -> Path:
        key = digest(sha256, code_digest("protgraph.structure"))
        return self.folder / "records" / key[:2] / f"{key}.json"

    def _record(self, path: Path) -> Path:
        key = digest(_stamps(path))
        return self.folder / "checksums" / key[:2] / f"{key}.json"

    def _entry(self, path: Path, sha256: str, read: ReadOptions) -> Path:
        key = digest(sha256, path.name, read.to_dict(), code_digest("protgraph.structure"))
        return self.folder / "residues" / key[:2] / f"{key}.npz"


def _stamps(path: str | Path) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of a file, or of the database of an entry "db:name", and its name."""
    if (entry := split_entry(path)) is None:
        return stamps([Path(path).absolute()])
    files = stamps([Path(f"{entry[0]}{suffix}").absolute() for suffix in ("", ".index", ".lookup")])
    return [*files, (entry[1], 0, 0)]
