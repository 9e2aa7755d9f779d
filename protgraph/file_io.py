"""Atomic writes, appended lines and checksums of files, used by every package that writes or caches files."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from protgraph.errors import OutputFileError, ProtgraphError

__all__ = [
    "append_line",
    "atomic_write",
    "file_sha256",
    "gunzip",
    "output_errors",
    "read_json_lines",
    "remove_if_empty",
    "unpack_tar",
    "write_text_file",
]

#: Largest size of a file after decompression, bytes. The largest entries of the Protein Data Bank have some 400 MB.
LARGEST_UNPACKED = 2**30
_BLOCK = 2**22  # bytes that are unpacked at a time

#: Error number of a failed write → how to fix it.
_FIXES: dict[int, str] = {
    errno.ENOSPC: "Free space on this disk, or write to another one",
    errno.EDQUOT: "Free space of your quota, or write to another disk",
    errno.EFBIG: "Raise the limit of file sizes ('ulimit -f'), or write to another file system",
    errno.EIO: "Check the disk, or write to another one",
    errno.EROFS: "Write to another disk",
    errno.ENOTEMPTY: "Remove the folder, or use another name",
}


@contextmanager
def atomic_write(path: str | Path, *, folder: bool = False, overwrite: bool = False) -> Iterator[Path]:
    """Write a file or folder under a temporary name beside ``path`` and rename it when the block ends.

    Readers see the complete content or none. If the block raises, or if it deletes the temporary file, ``path`` stays
    as it was. Missing parent folders are created, and removed if the block raises and nothing else is in them;
    permissions follow the umask. A link is followed: the file that it points to is replaced.

    ``path``: final place. An existing file is replaced. ``folder``: create a folder instead of an empty file.
    ``overwrite``: replace an existing folder that is not empty. It is renamed, and removed when the new one is in its
    place. Yields the temporary file or folder to write into.

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
    missing = [parent for parent in final.parents if not parent.exists()]
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
        raise _output_error(path, e.errno, e.strerror or str(e)) from e
    try:
        with output_errors(path, temporary=temporary):
            yield temporary
        try:
            _put_in_place(temporary, final, mode=mode, overwrite=overwrite)
        except OSError as e:
            raise _output_error(path, e.errno, e.strerror or str(e)) from e
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        remove_if_empty(missing)


def remove_if_empty(folders: Iterable[str | Path]) -> None:
    """Remove folders up to the first that does not exist or has files; give inner folders first."""
    for path in folders:
        try:
            os.rmdir(path)
        except OSError:
            return


def _put_in_place(temporary: Path, final: Path, *, mode: int, overwrite: bool) -> None:
    """Move a file or folder to its final place; a folder there is renamed first and removed last."""
    if not temporary.exists():  # deleted by the block: the final place stays as it was
        return
    temporary.chmod(mode)
    if not (overwrite and final.is_dir()):
        os.replace(temporary, final)
        return
    earlier = temporary.with_suffix(".old")
    os.replace(final, earlier)
    try:
        os.replace(temporary, final)
    except BaseException:
        os.replace(earlier, final)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


@contextmanager
def output_errors(path: str | Path, *, temporary: Path | None = None) -> Iterator[None]:
    """Raise :class:`OutputFileError` for ``path`` if a write in the block fails, e.g. because the disk is full."""
    try:
        yield
    except Exception as e:
        found = _write_failure(e, (str(temporary or path), str(path)))
        if found is None:
            raise
        raise _output_error(path, *found) from e


def write_text_file(path: str | Path, text: str) -> None:
    """Write text as UTF-8 with :func:`atomic_write`."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append_line(path: str | Path, line: str) -> None:
    """Append a line to a text file with a single write, synced to disk; create its folder.

    An unfinished last line of an earlier, killed process is terminated first, so that only that line is lost.
    """
    path = Path(path)
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            text = line.encode() + b"\n"
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else b"\n" + text
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines; empty if there is none. Unfinished lines are skipped."""
    objects = []
    lines = Path(path).read_bytes().splitlines() if Path(path).is_file() else []
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict):
            objects.append(data)
    return objects


def gunzip(content: bytes, *, limit: int = LARGEST_UNPACKED) -> bytes:
    """Return the decompressed bytes of a gzip file of one or more members.

    Raises
    ------
    OverflowError
        They are more than ``limit`` bytes; no more than these are unpacked.
    EOFError, OSError, zlib.error
        The file is damaged or cut off.
    """
    blocks, size = [], 0
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while block := file.read(_BLOCK):
            size += len(block)
            if size > limit:
                raise OverflowError(f"the gzip stream unpacks to more than {limit} bytes. Unpack the file first")
            blocks.append(block)
    return b"".join(blocks)


def unpack_tar(archive: str | Path, folder: str | Path) -> None:
    """Unpack the files and folders of a tar archive; nothing is written outside of ``folder``.

    A link becomes a copy of the file of the archive that it points to.
    """
    # Not TarFile.extractall(filter="data"): it came with Python 3.11.4, and Debian 12 has Python 3.11.2.
    with tarfile.open(archive) as tar:
        for member in tar:
            target = _path_inside(Path(folder), member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            content = _member_content(tar, member)
            if member.size > shutil.disk_usage(folder).free:
                raise tarfile.TarError(f"member {member.name!r} has {member.size} bytes, more than the disk has free")
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _path_inside(folder: Path, name: str) -> Path:
    """Return the path of a member of an archive within a folder; an error if it leads out of it."""
    # An archive is written with "/" on every system. A drive or "\\" in a name is a way out on Windows only.
    relative = PurePosixPath(name)
    if relative.is_absolute() or PureWindowsPath(name).anchor or ".." in PureWindowsPath(name).parts:
        raise tarfile.TarError(f"member {name!r} has a path outside of the folder")
    return folder.joinpath(*relative.parts)


def _member_content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    """Return the content of a file of an archive, or of the file that a link of it points to."""
    try:
        content = tar.extractfile(member)
    except (KeyError, RecursionError) as e:
        reason = f"links to {member.linkname!r}, which is not a file of the archive"
        raise tarfile.TarError(f"member {member.name!r} {reason}") from e
    if content is None:
        raise tarfile.TarError(f"member {member.name!r} is not a file, a folder or a link to a file")
    return content


def _write_failure(e: BaseException, names: tuple[str, ...]) -> tuple[int | None, str] | None:
    """Return error number and reason if an exception is a failed write of a file with these names, else None."""
    link: BaseException | None = e
    while link is not None and not isinstance(link, ProtgraphError):
        name = getattr(link, "filename", None)
        if name is not None and not str(name).startswith(names):
            return None
        number: int | None = getattr(link, "errno", None)
        if number is None and (found := re.search(r"\(os error (\d+)\)", str(link))):  # SafetensorError
            number = int(found[1])
        if number is not None and number in _FIXES:
            return number, os.strerror(number)
        if type(link) is OSError and number is None:  # numpy: "100000 requested and 4968 written"
            return None, str(link)
        link = link.__context__
    return None


def _output_error(path: str | Path, number: int | None, reason: str) -> OutputFileError:
    unchanged = " The earlier file is unchanged." if os.path.exists(path) else ""
    fix = "Write to another folder, or use another name"
    if number is not None:
        fix = _FIXES.get(number, fix)
    error = OutputFileError(f"file not written: {str(path)!r} ({reason.lower()}).{unchanged} {fix}.")
    error.errno, error.strerror, error.filename = number, reason, str(path)
    return error


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
