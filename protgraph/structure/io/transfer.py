"""Transfer of one file over HTTP: resumes a partial download, repeats what may succeed later.

Not pooch: ``pooch.HTTPDownloader`` restarts a cut download from the first byte and repeats every failed request, also
one refused for good (pooch 1.9.0, 2026-11-22).
"""

from __future__ import annotations

import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from protgraph.errors import FetchError, OutputFileError
from protgraph.file_io import output_errors, write_text_file

__all__ = ["FileNotOnServerError", "ResumedTransfer"]

_BLOCK = 2**18  # bytes written at once
_LONGEST_WAIT = 30.0  # seconds between two attempts, even if Retry-After is longer
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


class FileNotOnServerError(Exception):
    """The server does not have the file."""


@dataclass(frozen=True)
class ResumedTransfer:
    """Downloader that resumes and retries.

    Parameters
    ----------
    part : Path
        Partial download; one that is there already is completed.
    timeout, retries, backoff
        Seconds to wait for an answer; attempts after the first one; seconds before the second attempt, doubled before
        each further one.
    """

    part: Path
    timeout: float
    retries: int
    backoff: float

    def __call__(self, address: str, output: Path) -> None:
        """Download ``address`` to ``output`` by way of ``part``."""
        try:
            self._download(address)
            os.replace(self.part, output)
        finally:
            if self.part.exists() and not self.part.stat().st_size:
                self.part.unlink()

    def _download(self, address: str) -> None:
        """Complete the partial download in up to ``retries`` + 1 attempts."""
        for attempt in range(self.retries + 1):
            try:
                self._attempt(address)
                return
            except urllib.error.HTTPError as e:
                if e.code in (404, 410):
                    raise FileNotOnServerError(address) from e
                problem, pause = f"HTTP {e.code} {e.reason}", _seconds(e.headers.get("Retry-After"))
                if e.code == 416:  # the partial file does not fit; start again
                    self.part.unlink(missing_ok=True)
                elif e.code not in _TRY_AGAIN:
                    raise FetchError(f"{address}: {problem}") from e
            except OutputFileError:
                raise
            except (OSError, http.client.HTTPException) as e:
                problem, pause = f"{type(e).__name__}: {e}", 0.0
            if attempt < self.retries:
                time.sleep(min(max(self.backoff * 2**attempt, pause), _LONGEST_WAIT))
        raise FetchError(f"{address}: failed after {self.retries + 1} attempts ({problem})")

    def _attempt(self, address: str) -> None:
        """Request the missing bytes once; raise ``ConnectionError`` if fewer arrive than announced."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "protgraph"}
        tag_file = self.part.with_name(self.part.name + ".tag")
        size = self.part.stat().st_size if self.part.exists() else 0
        if size and tag_file.exists():
            headers |= {"Range": f"bytes={size}-", "If-Range": tag_file.read_text(encoding="utf-8")}
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            is_rest = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {size}-")
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            if tag and not tag.startswith("W/"):
                write_text_file(tag_file, tag)
            else:  # without a strong validator, a rest may belong to another version of the file
                tag_file.unlink(missing_ok=True)
            announced = answer.headers.get("Content-Length")
            with output_errors(self.part), open(self.part, "ab" if is_rest else "wb") as file:
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
