"""Download structures from public archives into a cache; verify checksums, resume partial downloads.

The cache folder comes from platformdirs, locks from filelock, verification and placement of a download from pooch.
Not pooch: the transfer itself; ``pooch.HTTPDownloader`` restarts a cut download from the first byte and repeats every
failed request, also one refused for good (pooch 1.9.0, 2026-11-22).
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from protgraph.argument_types import check_arguments
from protgraph.errors import (
    FetchError,
    NotInArchiveError,
    OfflineError,
    OptionError,
    OutputFileError,
    StructureFileError,
    suggest,
)
from protgraph.file_io import atomic_write, file_sha256, output_errors, write_text_file
from protgraph.structure.io.accession import Accession, parse_accession
from protgraph.structure.io.cache_folder import cache_dir
from protgraph.structure.io.sniff import detect_format, read_file

__all__ = ["fetch", "is_offline"]

_BLOCK = 2**18  # bytes written at once
_LONGEST_WAIT = 30.0  # seconds between two attempts, even if Retry-After is longer
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


def is_offline() -> bool:
    """Return True if ``$PROTGRAPH_OFFLINE`` is set to anything but 0 or the empty string."""
    return os.environ.get("PROTGRAPH_OFFLINE", "0") not in ("", "0")


@check_arguments("accession", "form", "retries")
def fetch(
    accession: str | Accession,
    *,
    form: str = "bcif",
    cache: str | Path | None = None,
    offline: bool | None = None,
    sha256: str | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    backoff: float = 0.5,
) -> Path:
    """Return the file of an entry of the PDB or of AlphaFold DB, from the cache or over the network.

    Parameters
    ----------
    accession : str or Accession
        "1ubq", "pdb:1ubq", "af:P69905" or "AF-P69905-F1".
    form : {"bcif", "cif"}
        BinaryCIF or mmCIF.
    cache : str or Path, optional
        See :func:`cache_dir`. Files are in its folder ``structures``, each with a JSON record of its SHA-256.
    offline : bool, optional
        True: use the cache only. Default: :func:`is_offline`.
    sha256 : str, optional
        Expected hexadecimal digest of the file.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        Attempts after the first one.
    backoff : float
        Seconds before the second attempt; doubled before each further one.

    Returns
    -------
    Path
        A complete, readable file.

    Raises
    ------
    SelectionError
        ``accession`` is not a PDB id or UniProt accession.
    NotInArchiveError
        The archive does not have the entry.
    OfflineError
        The entry is not in the cache and downloads are disabled.
    FetchError
        The network or the server fails, or the file has another checksum or is not a structure.
    """
    if retries < 0:
        raise OptionError(f"fetch: retries = {retries}. Allowed: 0 or more.")
    entry = accession if isinstance(accession, Accession) else parse_accession(accession)
    folder = cache_dir(cache) / "structures"
    for address in entry.addresses(form):
        if _is_verified(path := _path(folder, entry, address), sha256):
            return path
    if is_offline() if offline is None else offline:
        raise OfflineError(
            f"{entry.name} is not in {folder}, and downloads are disabled.\n"
            "Download it once without --offline and PROTGRAPH_OFFLINE, or pass a file."
        )
    from filelock import FileLock

    (folder / "locks").mkdir(parents=True, exist_ok=True)
    for address in entry.addresses(form):
        path = _path(folder, entry, address)
        with FileLock(folder / "locks" / f"{path.name}.lock"):
            if _is_verified(path, sha256):  # downloaded by another process in the meantime
                return path
            try:
                _retrieve(address, path, sha256, _Transfer(_with_suffix(path, ".part"), timeout, retries, backoff))
            except _NotFoundError:
                continue
            return path
    raise NotInArchiveError(_not_in_archive(entry, folder))


def _path(folder: Path, entry: Accession, address: str) -> Path:
    """Return the place of a file in the cache, with the suffixes of its address."""
    name = address.rsplit("/", 1)[-1]
    gz = ".gz" if name.endswith(".gz") else ""
    return folder / f"{entry.name}.{name.removesuffix('.gz').rsplit('.', 1)[-1]}{gz}"


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _is_verified(path: Path, sha256: str | None) -> bool:
    """Return True if the file exists with the SHA-256 of its record, and of the caller where given."""
    try:
        recorded = json.loads(_with_suffix(path, ".json").read_text())["sha256"]
        digest = file_sha256(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return digest == recorded and sha256 in (None, digest)


def _retrieve(address: str, path: Path, sha256: str | None, transfer: _Transfer) -> None:
    """Download a file, verify it, write its record and move it to its place."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # no line on stderr for each file
    complete = _with_suffix(path, ".complete")
    complete.unlink(missing_ok=True)
    known_hash = None if sha256 is None else f"sha256:{sha256}"
    try:
        pooch.retrieve(address, known_hash, fname=complete.name, path=complete.parent, downloader=transfer)
        detect_format(read_file(complete).data, "the answer")
        record = {"url": address, "bytes": complete.stat().st_size, "sha256": file_sha256(complete)}
        with atomic_write(_with_suffix(path, ".json")) as file:
            file.write_text(json.dumps(record) + "\n")
        os.replace(complete, path)
    except StructureFileError as e:
        raise FetchError(f"{address}: the downloaded file is not a structure: {e}") from e
    except ValueError as e:  # of pooch
        raise FetchError(f"{address}: the file does not have the SHA-256 {sha256}") from e
    finally:
        complete.unlink(missing_ok=True)


class _NotFoundError(Exception):
    """The server does not have the file."""


@dataclass(frozen=True)
class _Transfer:
    """Downloader for pooch that resumes and retries.

    Parameters
    ----------
    part : Path
        Partial download; one that is there already is completed.
    timeout, retries, backoff
        See :func:`fetch`.
    """

    part: Path
    timeout: float
    retries: int
    backoff: float

    def __call__(self, address: str, output: str, _: object) -> None:
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
                    raise _NotFoundError(address) from e
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
        tag_file = _with_suffix(self.part, ".tag")
        size = self.part.stat().st_size if self.part.exists() else 0
        if size and tag_file.exists():
            headers |= {"Range": f"bytes={size}-", "If-Range": tag_file.read_text()}
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


def _not_in_archive(entry: Accession, folder: Path) -> str:
    """Return the message for a missing entry, with similar ids from the cache or with digits for misread letters."""
    cached = {p.name.split(".")[0] for p in folder.glob("*.json")}
    digits = entry.id[:1] + entry.id[1:].translate(str.maketrans("oil", "011"))
    guesses = [digits] if entry.archive == "pdb" and digits != entry.id else []
    archive = "the Protein Data Bank" if entry.archive == "pdb" else "AlphaFold DB"
    hint = suggest(entry.name, cached, also=guesses, cutoff=0.7)
    return f"{archive} has no entry {entry.name!r} (or it was withdrawn).{hint}"
