"""Checksums and sequences of files, cached by their stamps, the read options and the reader's code."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from protgraph.data.cache_key import code_digest, digest, stamps
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.file_io import atomic_write
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.registered_readers import split_entry

__all__ = ["cached_fingerprint"]


def cached_fingerprint(path: Path, *, folder: str | Path, read: ReadOptions) -> Fingerprint:
    """Return the checksum and the sequences of a file, which is opened only if its size or time of change is new.

    ``path``: structure or FASTA file, or an entry "db:name" of a container.
    """
    key = digest(_stamps(path), read.to_dict(), code_digest("protgraph.structure"))
    entry = Path(folder) / "contents" / key[:2] / f"{key}.json"
    try:
        return Fingerprint.from_dict(json.loads(entry.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        pass  # missing or damaged
    fingerprint = fingerprint_file(path, read=read)
    with atomic_write(entry) as temporary:
        temporary.write_text(json.dumps(asdict(fingerprint)), encoding="utf-8")
    return fingerprint


def _stamps(path: str | Path) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of a file, or of the files of a container and the name of an entry."""
    if (entry := split_entry(path)) is None:
        return stamps([Path(path).absolute()])
    files = stamps([Path(file).absolute() for file in entry.reader.files(entry.container)])
    return [*files, (entry.name, 0, 0)]
