"""Base class of datasets in a folder that ``protgraph data prepare`` writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from protgraph.data.datasets.card import load_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.errors import DatasetError
from protgraph.file_io import file_sha256
from protgraph.structure.io.transfer import cache_dir

__all__ = ["EXAMPLES", "MANIFEST", "PreparedFolder", "has_digest", "write_table"]

EXAMPLES, MANIFEST = "examples.tsv", "manifest.tsv"


class PreparedFolder(Dataset):
    """Dataset of a card and a folder, which is written once from a source.

    Parameters
    ----------
    folder : str, optional
        Prepared folder. Default: ``datasets/NAME-VERSION`` in the cache folder.
    """

    card_path: ClassVar[Path]
    """``dataset.toml`` of the package."""

    def __init__(self, *, folder: str | None = None) -> None:
        self.card = load_card(self.card_path)
        self.folder = Path(folder) if folder else cache_dir() / "datasets" / f"{self.card.name}-{self.card.version}"

    @abstractmethod
    def write(self, source: SourceFolder, part: Path, progress: Callable[[int], None] | None = None) -> int:
        """Write all files of the prepared folder into ``part``; return the proteins that an earlier run had written.

        The last file is the manifest. A run that is interrupted may leave files, which the next one continues.
        """

    @property
    def is_prepared(self) -> bool:
        """True if the folder is complete."""
        return (self.folder / MANIFEST).is_file()

    def links(self, example: Example) -> frozenset[str]:
        """Return the sequence cluster of an example."""
        cluster = self.rows[example.id]["cluster"]
        return frozenset({f"cluster {cluster}"}) if cluster else super().links(example)

    @cached_property
    def rows(self) -> dict[str, dict[str, str]]:
        """Example → its row of ``examples.tsv``."""
        if not self.is_prepared:
            raise DatasetError(
                f"dataset {self.name!r} is not prepared (no {str(self.folder)!r}). Prepare it once: "
                f"protgraph data prepare {self.name} --from FOLDER, or --download."
            )
        return {row["id"]: row for row in read_tsv(self.folder / EXAMPLES)}


def write_table(path: Path, rows: list[tuple[str, ...]]) -> None:
    """Write rows, the first one with the names of the columns, separated by tabs."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def has_digest(path: Path, digest: str) -> bool:
    """Return True if a file is there and has this SHA-256."""
    return path.is_file() and file_sha256(path) == digest
