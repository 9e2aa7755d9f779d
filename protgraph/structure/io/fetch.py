"""Download structures from public archives into a cache; verify checksums, resume partial downloads.

The cache folder comes from platformdirs, locks from filelock. The transfer is
:class:`protgraph.structure.io.transfer.ResumedTransfer`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from protgraph.argument_types import check_arguments
from protgraph.errors import (
    FetchError,
    NotInArchiveError,
    OfflineError,
    OptionError,
    StructureFileError,
    suggest,
)
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure.io.accession import Accession, parse_accession
from protgraph.structure.io.cache_folder import cache_dir
from protgraph.structure.io.sniff import detect_format, read_file
from protgraph.structure.io.transfer import FileNotOnServerError, ResumedTransfer

__all__ = ["fetch", "is_offline"]


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
                _retrieve(
                    address, path, sha256, ResumedTransfer(_with_suffix(path, ".part"), timeout, retries, backoff)
                )
            except FileNotOnServerError:
                continue
            except FetchError as e:
                raise FetchError(
                    f"cannot fetch {entry.name}: {e}. Give a file that you have, or try again with a connection to the "
                    "server."
                ) from e
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
        recorded = json.loads(_with_suffix(path, ".json").read_text(encoding="utf-8"))["sha256"]
        digest = file_sha256(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return digest == recorded and sha256 in (None, digest)


def _retrieve(address: str, path: Path, sha256: str | None, transfer: ResumedTransfer) -> None:
    """Download a file, verify it, write its record and move it to its place."""
    complete = _with_suffix(path, ".complete")
    complete.unlink(missing_ok=True)
    try:
        transfer(address, complete)
        received = file_sha256(complete)
        if sha256 not in (None, received):
            raise FetchError(f"{address}: the file does not have the SHA-256 {sha256}")
        detect_format(read_file(complete).data, "the answer")
        record = {"url": address, "bytes": complete.stat().st_size, "sha256": received}
        with atomic_write(_with_suffix(path, ".json")) as file:
            file.write_text(json.dumps(record) + "\n", encoding="utf-8")
        os.replace(complete, path)
    except StructureFileError as e:
        raise FetchError(f"{address}: the downloaded file is not a structure: {e}") from e
    finally:
        complete.unlink(missing_ok=True)


def _not_in_archive(entry: Accession, folder: Path) -> str:
    """Return the message for a missing entry, with similar ids from the cache or with digits for misread letters."""
    cached = {p.name.split(".")[0] for p in folder.glob("*.json")}
    digits = entry.id[:1] + entry.id[1:].translate(str.maketrans("oil", "011"))
    guesses = [digits] if entry.archive == "pdb" and digits != entry.id else []
    archive = "the Protein Data Bank" if entry.archive == "pdb" else "AlphaFold DB"
    hint = suggest(entry.name, cached, also=guesses, cutoff=0.7)
    return f"{archive} has no entry {entry.name!r} (or it was withdrawn).{hint}"
