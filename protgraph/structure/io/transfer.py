"""Download of one file over HTTP to a path: verified, resumed, and repeated where that may succeed later."""

# Not pooch: restarts a cut download from the first byte, repeats refused requests (pooch 1.9.0, 2026-11-22).

from __future__ import annotations

import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from protgraph.errors import FetchError, OutputFileError
from protgraph.file_io import file_sha256, output_errors, write_text_file

__all__ = ["FileNotOnServerError", "cache_dir", "download", "is_offline"]

_BLOCK = 2**18  # bytes written at once
_LONGEST_WAIT = 30.0  # seconds between two attempts, even if Retry-After is longer
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


class FileNotOnServerError(Exception):
    """The server does not have the file."""


def cache_dir(folder: str | Path | None = None) -> Path:
    """Return the cache folder: ``folder``, else ``$PROTGRAPH_CACHE``, else the user's cache folder of the platform."""
    if folder is not None:
        return Path(folder)
    if variable := os.environ.get("PROTGRAPH_CACHE"):
        return Path(variable)
    from platformdirs import user_cache_path

    return user_cache_path("protgraph", appauthor=False)


def is_offline() -> bool:
    """Return True if ``$PROTGRAPH_OFFLINE`` is set to anything but 0 or the empty string."""
    return os.environ.get("PROTGRAPH_OFFLINE", "0") not in ("", "0")


def download(
    address: str,
    path: Path,
    *,
    sha256: str | None = None,
    check: Callable[[Path], None] | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    backoff: float = 0.5,
) -> str:
    """Download a file, verify it, and move it to its place; return its SHA-256.

    Bytes that have arrived are kept in ``path.part`` after an interruption, and the next call requests the others.

    Parameters
    ----------
    address : str
        Of HTTP or HTTPS.
    path : Path
        The file; its folder exists.
    sha256 : str, optional
        Expected hexadecimal digest.
    check : callable, optional
        Called with the complete file before it is moved; raises :class:`FetchError` to reject it.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        Attempts after the first one.
    backoff : float
        Seconds before the second attempt; doubled before each further one.

    Raises
    ------
    FileNotOnServerError
        The server answers 404 or 410.
    FetchError
        The network or the server fails, or the file has another checksum or is rejected.
    """
    partial, complete = (path.with_name(path.name + suffix) for suffix in (".part", ".complete"))
    try:
        _complete(address, partial, timeout, retries, backoff)
        os.replace(partial, complete)
    finally:
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
    try:
        received = file_sha256(complete)
        if sha256 not in (None, received):
            raise FetchError(f"{address}: the file has the SHA-256 {received}, not {sha256}")
        if check is not None:
            check(complete)
        os.replace(complete, path)
    finally:
        complete.unlink(missing_ok=True)
    return received


def _complete(address: str, partial: Path, timeout: float, retries: int, backoff: float) -> None:
    """Complete a partial download in up to ``retries`` + 1 attempts."""
    for attempt in range(retries + 1):
        try:
            _request_rest(address, partial, timeout)
            return
        except urllib.error.HTTPError as e:
            if e.code in (404, 410):
                raise FileNotOnServerError(address) from e
            reason, pause = f"HTTP {e.code} {e.reason}", _seconds(e.headers.get("Retry-After"))
            if e.code == 416:  # the partial file does not fit; start again
                partial.unlink(missing_ok=True)
            elif e.code not in _TRY_AGAIN:
                raise FetchError(f"{address}: {reason}") from e
        except OutputFileError:
            raise
        except (OSError, http.client.HTTPException) as e:
            reason, pause = f"{type(e).__name__}: {e}", 0.0
        if attempt < retries:
            time.sleep(min(max(backoff * 2**attempt, pause), _LONGEST_WAIT))
    raise FetchError(f"{address}: failed after {retries + 1} attempts ({reason})")


def _request_rest(address: str, partial: Path, timeout: float) -> None:
    """Request the missing bytes once; raise ``ConnectionError`` if fewer arrive than announced."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "protgraph"}
    tag_file = partial.with_name(partial.name + ".tag")
    size = partial.stat().st_size if partial.exists() else 0
    if size and tag_file.exists():
        headers |= {"Range": f"bytes={size}-", "If-Range": tag_file.read_text(encoding="utf-8")}
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        is_rest = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {size}-")
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if tag and not tag.startswith("W/"):
            write_text_file(tag_file, tag)
        else:  # without a strong validator, a rest may belong to another version of the file
            tag_file.unlink(missing_ok=True)
        announced = answer.headers.get("Content-Length")
        with output_errors(partial), open(partial, "ab" if is_rest else "wb") as file:
            begin = file.tell()
            shutil.copyfileobj(answer, file, _BLOCK)
            received = file.tell() - begin
            file.flush()
            os.fsync(file.fileno())
        if announced is not None and received != int(announced):
            raise ConnectionError(f"{received} of {announced} bytes arrived")
    tag_file.unlink(missing_ok=True)


def _seconds(text: str | None) -> float:
    """Return the seconds of a Retry-After header; 0 for a date."""
    return float(text) if text and text.isdigit() else 0.0
