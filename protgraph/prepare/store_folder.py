"""Folders of a store that is being written: its lock, its finished shards, and its final place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protgraph.data.store.store_description import SHARDS, StoreDescription, shard_path
from protgraph.errors import OptionError
from protgraph.file_io import atomic_write, output_errors, remove_if_empty

__all__ = ["kept_parts", "link_file", "locked_store", "place_store"]


def place_store(final: Path, unfinished: Path, description: StoreDescription) -> None:
    """Make the store from links to the finished shards, and rename it; a killed process loses no shard."""
    new, old = unfinished / "store", unfinished / "old"
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    with output_errors(final, temporary=new):
        (new / SHARDS).mkdir(parents=True)
        for entry in description.shards:
            link_file(shard_path(unfinished, entry.key), shard_path(new, entry.key))
        description.write(new)
        if final.exists():
            os.replace(final, old)
        os.replace(new, final)


def link_file(source: Path, target: Path) -> None:
    """Link a file, or copy it where the file system has no links; an existing target is replaced."""
    with atomic_write(target) as temporary:
        temporary.unlink()
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


@contextmanager
def kept_parts(final: Path) -> Iterator[Path]:
    """Yield the folder of finished shards beside the store; it is removed at the end if it is empty."""
    unfinished = final.parent / f".{final.name}.parts"
    missing = [parent for parent in unfinished.parents if not parent.exists()]
    try:
        yield unfinished
    finally:
        remove_if_empty([unfinished / SHARDS, unfinished, *missing])


@contextmanager
def locked_store(final: Path) -> Iterator[None]:
    """Exclude a second process that writes the same store."""
    from filelock import FileLock, Timeout

    missing = [parent for parent in final.parents if not parent.exists()]
    path = final.parent / f".{final.name}.lock"
    with output_errors(final):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
    except Timeout as e:
        raise OptionError(
            f"--out {str(final)!r} is being written by another process. Wait for it, or give another name."
        ) from e
    finally:
        remove_if_empty(missing)
