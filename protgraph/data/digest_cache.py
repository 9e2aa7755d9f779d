"""Digests of source files, kept in the cache folder between processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from protgraph.errors import OutputFileError
from protgraph.file_io import atomic_write
from protgraph.structure.io.cache_folder import cache_dir

__all__ = ["cached_digests"]

_FILE = "source_digests.json"
_SETTLED = 2.0  # seconds since the last edit: within the resolution of the times of files, a second edit is not seen


def cached_digests(paths: Sequence[Path], compute: Callable[[str], str], *, version: str) -> list[str]:
    """Return the digest of each file; a file is read only if its size or modification time changed since the last time.

    Parameters
    ----------
    paths : sequence of Path
        Files of text, UTF-8.
    compute : callable
        Function from the text of a file to its digest.
    version : str
        Changes with the function. Digests of other versions are not used.

    Notes
    -----
    The digests are in ``source_digests.json`` of the cache folder. If that cannot be written, e.g. because the folder
    is read-only, every process reads the files.
    """
    kept_in = cache_dir() / _FILE
    known = _read(kept_in, version)
    found: dict[str, list[Any]] = {}
    for path in paths:
        stat = path.stat()
        name, stamp = os.path.abspath(path), [stat.st_size, stat.st_mtime_ns]
        entry = known.get(name)
        found[name] = entry if entry is not None and entry[:2] == stamp else [*stamp, compute(path.read_text("utf-8"))]
    now = time.time_ns()
    settled = {name: entry for name, entry in found.items() if now - entry[1] > _SETTLED * 1e9}
    if any(known.get(name) != entry for name, entry in settled.items()):
        kept = {name: entry for name, entry in known.items() if name in settled or os.path.exists(name)}
        with suppress(OutputFileError), atomic_write(kept_in) as temporary:
            temporary.write_text(json.dumps({"version": version, "files": kept | settled}), encoding="utf-8")
    return [found[os.path.abspath(path)][2] for path in paths]


def _read(path: Path, version: str) -> dict[str, list[Any]]:
    """Return the kept entries, file → [size, modification time, digest]; none if they are damaged."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return dict(content["files"]) if content["version"] == version else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
