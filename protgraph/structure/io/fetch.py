"""Structures of public archives on this disk: fetched once, checked, kept; resumed where a download was cut off."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from protgraph.errors import FetchError, NotInArchiveError, OfflineError, StructureFileError, suggest
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure.io.accession import Accession, parse_accession
from protgraph.structure.io.sniff import detect_format, read_content

__all__ = ["cache_dir", "fetch", "is_offline"]

_BLOCK = 2**18
_LONGEST_WAIT = 30.0  # seconds between two attempts, whatever a server asks for
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class _Effort:
    """How hard to try: seconds for an answer, attempts after the first, seconds to wait, doubled each time."""

    timeout: float
    retries: int
    backoff: float


def cache_dir(given: str | Path | None = None) -> Path:
    """Where files are kept: the given folder, else ``$PROTGRAPH_CACHE``, else ``$XDG_CACHE_HOME/protgraph``."""
    if given is not None:
        return Path(given)
    if own := os.environ.get("PROTGRAPH_CACHE"):
        return Path(own)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "protgraph"


def is_offline() -> bool:
    """Whether ``$PROTGRAPH_OFFLINE`` forbids to fetch: set, and neither empty nor 0."""
    return os.environ.get("PROTGRAPH_OFFLINE", "0") not in ("", "0")


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
    """The file of an entry of the PDB or of AlphaFold DB, from the cache or over the network.

    Parameters
    ----------
    accession : str or Accession
        "1ubq", "pdb:1ubq", "af:P69905", "AF-P69905-F1".
    form : {"bcif", "cif"}
        BinaryCIF or mmCIF.
    cache : str or Path, optional
        See :func:`cache_dir`; files lie in its folder ``structures``, each beside a record of its SHA-256.
    offline : bool, optional
        Take the cache only; by default as :func:`is_offline` says.
    sha256 : str, optional
        Hexadecimal digest that the file must have.
    timeout, retries, backoff
        Seconds to wait for an answer; attempts after the first; seconds before the second attempt, doubled each time.

    Returns
    -------
    Path
        A file whose bytes are those that were fetched, whole and readable.

    Raises
    ------
    SelectionError
        It is no identifier.
    NotInArchiveError
        The archive has no such entry.
    OfflineError
        It is not in the cache, and fetching is forbidden.
    FetchError
        The network or the server fails, or what it sends is not what it or ``sha256`` said.
    """
    entry = accession if isinstance(accession, Accession) else parse_accession(accession)
    folder = cache_dir(cache) / "structures"
    for address in entry.addresses(form):
        if (kept := _kept(_place(folder, entry, address), sha256)) is not None:
            return kept
    if is_offline() if offline is None else offline:
        raise OfflineError(
            f"{entry.name} is not in {folder}, and fetching is switched off.\n"
            "Fetch it once without --offline and PROTGRAPH_OFFLINE, or give a file of your own."
        )
    folder.mkdir(parents=True, exist_ok=True)
    effort = _Effort(timeout, retries, backoff)
    for address in entry.addresses(form):
        place = _place(folder, entry, address)
        with _alone(place) as part:
            if (kept := _kept(place, sha256)) is not None:  # another process was quicker
                return kept
            if _download(address, part, place, effort):
                _accept(part, place, address, sha256)
                return place
    raise NotInArchiveError(_not_there(entry, folder))


def _place(folder: Path, entry: Accession, address: str) -> Path:
    """The file's place, with the suffixes of its address."""
    name = address.rsplit("/", 1)[-1]
    gz = ".gz" if name.endswith(".gz") else ""
    return folder / f"{entry.name}.{name.removesuffix('.gz').rsplit('.', 1)[-1]}{gz}"


def _record(place: Path) -> Path:
    return place.with_name(place.name + ".json")


def _part(place: Path) -> Path:
    return place.with_name(place.name + ".part")


def _kept(place: Path, sha256: str | None) -> Path | None:
    """The file, where it is there with the digest that its record has."""
    try:
        recorded = json.loads(_record(place).read_text())["sha256"]
        found = file_sha256(place)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return place if found == recorded and sha256 in (None, found) else None


@contextmanager
def _alone(place: Path) -> Iterator[BinaryIO]:
    """The unfinished file, open for reading and appending, held against other processes."""
    while True:
        with open(_part(place), "ab+") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            try:
                current = os.stat(part.name).st_ino == os.fstat(part.fileno()).st_ino
            except FileNotFoundError:
                current = False
            if not current:  # finished or thrown away by another while this one waited
                continue
            try:
                yield part
            finally:
                if os.path.exists(part.name) and not os.path.getsize(part.name):
                    os.unlink(part.name)
            return


def _download(address: str, part: BinaryIO, place: Path, effort: _Effort) -> bool:
    """Fill the unfinished file; False where the server has no such file."""
    for attempt in range(effort.retries + 1):
        try:
            _attempt(address, part, place, effort.timeout)
            return True
        except urllib.error.HTTPError as e:
            if e.code in (404, 410):
                return False
            problem, asked = f"HTTP {e.code} {e.reason}", _seconds(e.headers.get("Retry-After"))
            if e.code == 416:  # what is there does not fit; begin anew
                part.truncate(0)
            elif e.code not in _TRY_AGAIN:
                raise FetchError(f"{address}: {problem}") from e
        except (OSError, http.client.HTTPException) as e:
            problem, asked = f"{type(e).__name__}: {e}", 0.0
        if attempt < effort.retries:
            time.sleep(min(max(effort.backoff * 2**attempt, asked), _LONGEST_WAIT))
    raise FetchError(f"{address}: given up after {effort.retries + 1} attempts ({problem})")


def _attempt(address: str, part: BinaryIO, place: Path, timeout: float) -> None:
    """One request, for what is missing of the file; ``ConnectionError`` where less arrives than was promised."""
    begun = part.seek(0, os.SEEK_END)
    headers = {"Accept-Encoding": "identity", "User-Agent": "protgraph"}
    tag_file = place.with_name(place.name + ".tag")
    if begun and tag_file.exists():
        headers |= {"Range": f"bytes={begun}-", "If-Range": tag_file.read_text()}
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {begun}-")
        if not goes_on:
            begun = 0
            part.truncate(0)
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if tag and not tag.startswith("W/"):
            tag_file.write_text(tag)
        else:  # without a strong validator nobody knows whether a rest belongs to this beginning
            tag_file.unlink(missing_ok=True)
        length = answer.headers.get("Content-Length")
        shutil.copyfileobj(answer, part, _BLOCK)
        part.flush()
        got = part.seek(0, os.SEEK_END) - begun
        if length is not None and got != int(length):
            raise ConnectionError(f"{got} bytes of {length} arrived")
    tag_file.unlink(missing_ok=True)


def _accept(part: BinaryIO, place: Path, address: str, sha256: str | None) -> None:
    """Move the finished file to its place, where it is what it should be; else throw it away."""
    part.flush()
    os.fsync(part.fileno())
    part.seek(0)
    content = part.read()
    digest = hashlib.sha256(content).hexdigest()
    try:
        if sha256 not in (None, digest):
            raise FetchError(f"{address}: the file's SHA-256 is {digest}, not {sha256}")
        _check_readable(Path(part.name), address)
    except FetchError:
        os.unlink(part.name)
        raise
    record = _record(place)
    with atomic_write(record) as temporary:
        temporary.write_text(json.dumps({"url": address, "bytes": len(content), "sha256": digest}) + "\n")
    os.replace(part.name, place)


def _check_readable(path: Path, address: str) -> None:
    try:
        detect_format(read_content(path), "the answer")
    except StructureFileError as e:
        raise FetchError(f"{address}: what was sent is no structure: {e}") from e


def _seconds(text: str | None) -> float:
    """A Retry-After in seconds; dates count as none."""
    return float(text) if text and text.isdigit() else 0.0


def _not_there(entry: Accession, folder: Path) -> str:
    kept = {p.name.split(".")[0] for p in folder.glob("*.json")}
    # what is misread in an id: letters for digits
    digits = entry.id[:1] + entry.id[1:].translate(str.maketrans("oil", "011"))
    also = [digits] if entry.archive == "pdb" and digits != entry.id else []
    hint = suggest(entry.name, kept, also=also, cutoff=0.7)
    where = "the Protein Data Bank" if entry.archive == "pdb" else "AlphaFold DB"
    return f"{where} has no entry {entry.name!r} (or it was withdrawn).{hint}"
