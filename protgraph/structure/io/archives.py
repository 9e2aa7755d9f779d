"""Accessions of public structure archives, and downloads of their entries into a cache."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from protgraph.argument_types import check_arguments
from protgraph.errors import (
    FetchError,
    NotInArchiveError,
    OfflineError,
    OptionError,
    SelectionError,
    StructureFileError,
    suggest,
)
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure.io.sniff import detect_format, read_file
from protgraph.structure.io.transfer import FileNotOnServerError, cache_dir, download, is_offline

__all__ = ["FORMATS", "Accession", "as_accession", "fetch", "parse_accession"]

FORMATS = ("bcif", "cif")
"""Formats for download: BinaryCIF and mmCIF."""

# Environment variable and default of each archive's addresses.
_ADDRESSES = {
    ("pdb", "bcif"): ("PROTGRAPH_PDB_BCIF_URL", "https://models.rcsb.org/{id}.bcif.gz"),
    ("pdb", "cif"): ("PROTGRAPH_PDB_URL", "https://files.rcsb.org/download/{id}.cif.gz"),
    ("af", "bcif"): (
        "PROTGRAPH_AF_BCIF_URL",
        "https://alphafold.ebi.ac.uk/files/AF-{id}-F{fragment}-model_v{version}.bcif",
    ),
    ("af", "cif"): ("PROTGRAPH_AF_URL", "https://alphafold.ebi.ac.uk/files/AF-{id}-F{fragment}-model_v{version}.cif"),
}
_VERSIONS = (6, 5, 4)  # of models in AlphaFold DB, the newest first; v4 are the models of 2022

_PDB = re.compile(r"(?:pdb_0000)?([0-9][a-z0-9]{3})", re.IGNORECASE)
# UniProt's own expression for accessions, uniprot.org/help/accession_numbers
_UNIPROT = r"[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"
_AF = re.compile(rf"(?:AF-)?({_UNIPROT})(?:-F([0-9]+))?(?:-model_v([0-9]+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Accession:
    """One entry of an archive.

    ``archive``: "pdb" or "af"; Protein Data Bank or AlphaFold DB. ``id``: PDB id in lower case, or UniProt accession in
    upper case. ``fragment``: fragment number of a long protein in AlphaFold DB. ``version``: model version in AlphaFold
    DB. None: the newest available.
    """

    archive: str
    id: str
    fragment: int = 1
    version: int | None = None

    @property
    def name(self) -> str:
        """Return the identifier, e.g. "1ubq" or "AF-P69905-F1"."""
        version = f"-model_v{self.version}" if self.version else ""
        return self.id if self.archive == "pdb" else f"AF-{self.id}-F{self.fragment}{version}"

    def addresses(self, form: str) -> Iterator[str]:
        """Yield the addresses at which the file may be, in the order to try.

        Raises :class:`OptionError` if ``form`` is not one of :data:`FORMATS`.
        """
        if form not in FORMATS:
            raise OptionError(f"unknown format {form!r}.{suggest(form, FORMATS)} Choose from {', '.join(FORMATS)}.")
        variable, default = _ADDRESSES[self.archive, form]
        pattern = os.environ.get(variable, default)
        versions = (self.version,) if self.version else _VERSIONS if "{version}" in pattern else (None,)
        for version in versions:
            yield pattern.format(id=self.id, fragment=self.fragment, version=version)


def parse_accession(text: str) -> Accession:
    """Parse "1ubq", "pdb:1ubq", "P69905", "af:P69905" or "AF-P69905-F1".

    Raises :class:`SelectionError` if the text is not an accession of the archive.

    Examples
    --------
    >>> parse_accession("pdb:1UBQ").name, parse_accession("P69905").name
    ('1ubq', 'AF-P69905-F1')
    """
    archive, colon, identifier = text.partition(":")
    archive, identifier = (archive.lower(), identifier) if colon else ("", text)
    pdb, af = _PDB.fullmatch(identifier), _AF.fullmatch(identifier)
    if pdb and archive in ("pdb", ""):
        return Accession("pdb", pdb[1].lower())
    if af and archive in ("af", ""):
        return Accession("af", af[1].upper(), int(af[2] or 1), int(af[3]) if af[3] else None)
    other = "af" if af else "pdb"
    hint = f" Did you mean {other}:{identifier}?" if archive and (pdb or af) else ""
    raise SelectionError(
        f"{text!r} is not an accession of a structure archive.{hint}\n"
        "Write a PDB id as 1ubq or pdb:1ubq, a model of AlphaFold DB as af:P69905 or AF-P69905-F1 (UniProt accession)."
    )


def as_accession(path: str | os.PathLike[str]) -> Accession | None:
    """Parse "pdb:…" or "af:…"; return None for everything else, which is a path.

    Raises :class:`SelectionError` if the text after the colon is not an accession.
    """
    text = os.fspath(path)
    return parse_accession(text) if text.lower().startswith(("pdb:", "af:")) else None


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
                received = download(
                    address,
                    path,
                    sha256=sha256,
                    check=_check_structure,
                    timeout=timeout,
                    retries=retries,
                    backoff=backoff,
                )
            except FileNotOnServerError:
                continue
            except FetchError as e:
                raise FetchError(
                    f"cannot fetch {entry.name}: {e}. Give a file that you have, or try again with a connection to the "
                    "server."
                ) from e
            record = {"url": address, "bytes": path.stat().st_size, "sha256": received}
            with atomic_write(_record_path(path)) as file:
                file.write_text(json.dumps(record) + "\n", encoding="utf-8")
            return path
    raise NotInArchiveError(_not_in_archive(entry, folder))


def _path(folder: Path, entry: Accession, address: str) -> Path:
    """Return the place of a file in the cache, with the suffixes of its address."""
    name = address.rsplit("/", 1)[-1]
    gz = ".gz" if name.endswith(".gz") else ""
    return folder / f"{entry.name}.{name.removesuffix('.gz').rsplit('.', 1)[-1]}{gz}"


def _record_path(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _is_verified(path: Path, sha256: str | None) -> bool:
    """Return True if the file exists with the SHA-256 of its record, and of the caller where given."""
    try:
        recorded = json.loads(_record_path(path).read_text(encoding="utf-8"))["sha256"]
        digest = file_sha256(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return digest == recorded and sha256 in (None, digest)


def _check_structure(path: Path) -> None:
    try:
        detect_format(read_file(path).data, "the answer")
    except StructureFileError as e:
        raise FetchError(f"the downloaded file is not a structure: {e}") from e


def _not_in_archive(entry: Accession, folder: Path) -> str:
    """Return the message for a missing entry, with similar ids from the cache or with digits for misread letters."""
    cached = {p.name.split(".")[0] for p in folder.glob("*.json")}
    digits = entry.id[:1] + entry.id[1:].translate(str.maketrans("oil", "011"))
    guesses = [digits] if entry.archive == "pdb" and digits != entry.id else []
    archive = "the Protein Data Bank" if entry.archive == "pdb" else "AlphaFold DB"
    hint = suggest(entry.name, cached, also=guesses, cutoff=0.7)
    return f"{archive} has no entry {entry.name!r} (or it was withdrawn).{hint}"
