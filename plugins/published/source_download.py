"""Download of the files that a dataset card lists, from its repositories at their commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from protgraph_plugins.published.source_folder import read_tsv

from protgraph.data.datasets import DatasetCard, SourceRepository
from protgraph.errors import DatasetError, FetchError, OfflineError
from protgraph.file_io import file_sha256
from protgraph.structure.io import FileNotOnServerError, cache_dir, download, is_offline

__all__ = ["GITHUB", "download_source"]

GITHUB = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
"""Address of a file of a repository at a commit."""


def download_source(
    card: DatasetCard,
    package: Path,
    *,
    mirrors: tuple[str, ...] = (),
    offline: bool | None = None,
    retries: int = 4,
    backoff: float = 0.5,
    timeout: float = 30.0,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Download the files of a dataset into the cache folder, as in a clone of its repository.

    Files that are there with their checksum are kept, and a partial file is completed. Addresses are those of
    the caller's mirrors, of the card's mirrors, and of GitHub, in this order.
    """
    sources = [source for source in card.provenance.sources if source.files]
    if not sources:
        raise DatasetError(
            f"dataset {card.name!r} has no files to download. Give the folder of its source: "
            f"protgraph data prepare {card.name} --from FOLDER."
        )
    folder, done = cache_dir() / "datasets" / f"{card.name}-{card.version}.source", 0
    offline = is_offline() if offline is None else offline
    for source in sources:
        for row in read_tsv(package / source.files):
            path = folder / row["path"]
            if not (path.is_file() and file_sha256(path) == row["sha256"]):
                if offline:
                    raise OfflineError(
                        f"{path} is missing, and downloads are disabled. Download it without --offline and "
                        "PROTGRAPH_OFFLINE, or give the folder of the source with --from."
                    )
                addresses = _addresses((*mirrors, *source.mirrors, GITHUB), source, row["path"])
                _download_from_first(addresses, path, row["sha256"], timeout, retries, backoff)
            done += 1
            if progress is not None:
                progress(done)
    return folder


def _addresses(templates: tuple[str, ...], source: SourceRepository, path: str) -> list[str]:
    keys = {"repository": source.repository, "commit": source.commit, "path": quote(path)}
    return [template.format(**keys) for template in templates]


def _download_from_first(
    addresses: list[str], path: Path, sha256: str, timeout: float, retries: int, backoff: float
) -> None:
    """Download a file from the first address that has it with the right checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    faults = []
    for address in addresses:
        try:
            download(address, path, sha256=sha256, timeout=timeout, retries=retries, backoff=backoff)
            return
        except FileNotOnServerError:
            faults.append(f"{address}: not found")
        except FetchError as e:
            faults.append(str(e))
    raise FetchError(f"{path.name} cannot be downloaded. " + "; ".join(faults))
