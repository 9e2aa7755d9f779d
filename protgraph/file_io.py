"""Atomic writes and checksums of files, used by every package that writes or caches files."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_write", "file_sha256"]


@contextmanager
def atomic_write(path: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Write a file or folder under a temporary name beside ``path`` and rename it when the block ends.

    Readers see the complete content or none. If the block raises, or if it deletes the temporary file, ``path`` stays
    as it was. Missing parent folders are created; permissions follow the umask.

    Not atomicwrites: archived since 2022, and it writes no folders (atomicwrites 1.4.1, 2026-11-22).

    Parameters
    ----------
    path : str or Path
        Final place. An existing file is replaced; an existing folder is not (``OSError``).
    folder : bool
        Create a folder instead of an empty file.

    Yields
    ------
    Path
        Temporary file or folder to write into.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new" / "scores.csv"
    >>> with atomic_write(path) as temporary:
    ...     _ = temporary.write_text("protein,score")
    >>> path.read_text()
    'protein,score'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    if folder:
        temporary.mkdir()
    else:
        temporary.touch(exist_ok=False)
    mode = temporary.stat().st_mode  # some writers (safetensors, tempfile) let only the owner read
    try:
        yield temporary
        if temporary.exists():
            temporary.chmod(mode)
            os.replace(temporary, path)
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
