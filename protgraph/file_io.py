"""Atomic writes and checksums of files, used by every package that writes or caches files."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protgraph.errors import OutputFileError, ProtgraphError

__all__ = ["atomic_write", "file_sha256", "write_text_file"]

#: Error number of a failed write → how to fix it.
_FIXES = {
    errno.ENOSPC: "Free space on this disk, or write to another one",
    errno.EDQUOT: "Free space of your quota, or write to another disk",
    errno.EFBIG: "Raise the limit of file sizes ('ulimit -f'), or write to another file system",
    errno.EIO: "Check the disk, or write to another one",
    errno.EROFS: "Write to another disk",
}


@contextmanager
def atomic_write(path: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Write a file or folder under a temporary name beside ``path`` and rename it when the block ends.

    Readers see the complete content or none. If the block raises, or if it deletes the temporary file, ``path`` stays
    as it was. Missing parent folders are created; permissions follow the umask. A link is followed: the file that it
    points to is replaced.

    Not atomicwrites: archived since 2022, and it writes no folders (atomicwrites 1.4.1, 2026-11-22).

    Parameters
    ----------
    path : str or Path
        Final place. An existing file is replaced; an existing folder is not, unless it is empty.
    folder : bool
        Create a folder instead of an empty file.

    Yields
    ------
    Path
        Temporary file or folder to write into.

    Raises
    ------
    OutputFileError
        The file cannot be created or renamed, or a write failed because the disk is full or the file too large. It has
        ``filename``, the final place, and ``errno``.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new" / "scores.csv"
    >>> with atomic_write(path) as temporary:
    ...     _ = temporary.write_text("protein,score")
    >>> path.read_text()
    'protein,score'
    """
    final = Path(os.path.realpath(path))
    temporary = final.parent / f".{final.name}.{secrets.token_hex(4)}.part"
    try:
        if final.exists() and not (final.is_file() or final.is_dir()):
            raise OSError(errno.EINVAL, "not a regular file")
        final.parent.mkdir(parents=True, exist_ok=True)
        if folder:
            temporary.mkdir()
        else:
            temporary.touch(exist_ok=False)
        mode = temporary.stat().st_mode  # some writers (safetensors, tempfile) let only the owner read
    except OSError as e:
        raise _output_error(path, e.errno, e.strerror) from e
    try:
        yield temporary
        if temporary.exists():
            temporary.chmod(mode)
            _rename(temporary, final, path)
    except Exception as e:
        reason = _write_failure(e, temporary)
        if reason is None:
            raise
        raise _output_error(path, *reason) from e
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def write_text_file(path: str | Path, text: str) -> None:
    """Write text as UTF-8 with :func:`atomic_write`."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _rename(temporary: Path, final: Path, path: str | Path) -> None:
    try:
        os.replace(temporary, final)
    except OSError as e:
        raise _output_error(path, e.errno, e.strerror) from e


def _write_failure(e: BaseException, temporary: Path) -> tuple[int | None, str] | None:
    """Return error number and reason if an exception is a failed write of the temporary file, else None."""
    link: BaseException | None = e
    while link is not None and not isinstance(link, ProtgraphError):
        name = getattr(link, "filename", None)
        if name is not None and not str(name).startswith(str(temporary)):
            return None
        number = getattr(link, "errno", None)
        if number is None and (found := re.search(r"\(os error (\d+)\)", str(link))):  # SafetensorError
            number = int(found[1])
        if number in _FIXES:
            return number, os.strerror(number)
        if type(link) is OSError and number is None:  # numpy: "100000 requested and 4968 written"
            return None, str(link)
        link = link.__context__
    return None


def _output_error(path: str | Path, number: int | None, reason: str) -> OutputFileError:
    kept = " The earlier file is unchanged." if os.path.exists(path) else ""
    fix = _FIXES.get(number, "Write to another folder, or use another name")
    error = OutputFileError(f"file not written: {str(path)!r} ({reason.lower()}).{kept} {fix}.")
    error.errno, error.filename = number, str(path)
    return error


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
