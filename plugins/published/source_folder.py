"""Source folders of published datasets: their proteins with split, cluster and labels, and tables that list them."""

from __future__ import annotations

import csv
import gzip
import hashlib
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from protgraph.errors import DatasetError
from protgraph.file_io import unpack_tar
from protgraph.structure import Structure, load_structure

__all__ = [
    "SourceFolder",
    "SourceProtein",
    "hold_out_clusters",
    "read_tsv",
    "write_tsv",
]


@dataclass(frozen=True, eq=False)
class SourceProtein:
    """One protein of a source folder.

    Parameters
    ----------
    id : str
        Name of the example and of the prepared file.
    path : Path
        Structure file of the source.
    split : str
    chains : tuple of str, optional
        Author chain ids that are kept; None: every protein chain.
    cluster : str
        Sequence cluster; examples of a cluster are never in different folds.
    residues : tuple of ndarray, optional
        Chain, residue number and insertion code of the labeled residues, ``(R,)`` each.
    residue_labels : mapping of str to ndarray
        Task → ``(R,)`` float, NaN for unknown; for classes, the number of the class. A task may be absent.
    protein_labels : mapping of str to float
        Task → label of the protein; for classes, the number of the class. A task may be absent.
    read : callable, optional
        Function that returns the structure. Default: :func:`protgraph.structure.load_structure` of the path.
    content : bytes, optional
        Bytes that the structure depends on. Default: the file.
    """

    id: str
    path: Path
    split: str
    chains: tuple[str, ...] | None = None
    cluster: str = ""
    residues: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    residue_labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    protein_labels: Mapping[str, float] = field(default_factory=dict)
    read: Callable[[], Structure] | None = None
    content: bytes | None = None

    def structure(self) -> Structure:
        """Return the structure, with everything that the source has."""
        return load_structure(self.path) if self.read is None else self.read()

    def source_bytes(self) -> bytes:
        """Return bytes that the prepared structure depends on; it is converted again where they differ."""
        return self.path.read_bytes() if self.content is None else self.content


@dataclass(frozen=True)
class SourceFolder:
    """Folder with the files of a source.

    Parameters
    ----------
    folder : Path
    scratch : Path
        Folder for unpacked archives; removed when the dataset is prepared.
    """

    folder: Path
    scratch: Path

    def has(self, name: str) -> bool:
        """Return True if the folder has a file or folder of this name."""
        return (self.folder / name).exists()

    def path(self, name: str) -> Path:
        """Return the path of a file or folder.

        Raises
        ------
        DatasetError
            It does not exist.
        """
        if not self.has(name):
            raise self._missing(name)
        return self.folder / name

    def folder_or_archive(self, folder: str, archive: str) -> Path:
        """Return the path of a folder, or of the unpacked content of the archive that is given in its place.

        Raises
        ------
        DatasetError
            Neither exists, or the archive is damaged.
        """
        if self.has(archive):
            return self.unpacked(archive)
        if not self.has(folder):
            raise self._missing(folder, archive)
        return self.folder / folder

    def _missing(self, *names: str) -> DatasetError:
        """Return the error that none of some files exists, with a folder inside that has one."""
        inside = next((place for name in names for place in sorted(self.folder.glob(f"*/{name}"))), None)
        where = "the folder of the dataset itself, complete"
        if inside is not None:
            where = str(self.folder / inside.relative_to(self.folder).parts[0])
        found = " or ".join(map(repr, names))
        return DatasetError(f"source folder {str(self.folder)!r} has no {found}. Give {where}.")

    def unpacked(self, name: str) -> Path:
        """Return the folder with the content of a tar archive, unpacked once.

        Raises
        ------
        DatasetError
            The archive does not exist or is damaged.
        """
        archive = self.path(name)
        target = self.scratch / name.replace("/", "_").split(".")[0]
        if target.is_dir():
            return target
        unfinished = target.with_name(target.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            unpack_tar(archive, unfinished)
        except (tarfile.TarError, EOFError, OSError) as e:
            raise DatasetError(f"{archive}: the archive cannot be unpacked: {e}. Copy or download it again.") from e
        unfinished.rename(target)
        return target


def read_tsv(path: str | Path) -> list[dict[str, str]]:
    """Read a table with a header and columns separated by tabs; it may be compressed with gzip."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write_tsv(path: str | Path, rows: Iterable[Sequence[str]]) -> None:
    """Write rows, the first one with the names of the columns, separated by tabs."""
    Path(path).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def hold_out_clusters(clusters: Sequence[str], fraction: float) -> np.ndarray:
    """Return ``(P,)`` bool, the proteins of the clusters held out of P proteins.

    Clusters are taken in the order of the SHA-256 of their names until at least ``fraction`` of the proteins is held
    out, so that the choice depends on the names alone.

    Examples
    --------
    >>> hold_out_clusters(["a", "a", "b", "c"], 0.25).tolist()
    [False, False, False, True]
    """
    names, inverse, counts = np.unique(np.asarray(clusters, str), return_inverse=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: hashlib.sha256(str(names[i]).encode()).hexdigest())
    total, held = 0, np.zeros(len(names), bool)
    for i in order:
        if total >= fraction * len(clusters):
            break
        held[i], total = True, total + counts[i]
    return held[inverse]
