"""Dataset ``ppi_site``: interface residues of Test_60."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.repository_labels import read_repository_labels
from protgraph.data.datasets.site_tables import read_site_tables
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["PpiSite"]
ENTRY_POINTS = {"protgraph.datasets": {"ppi_site": "PpiSite"}}

FOLDER = Path(__file__).resolve().parent
TABLE = "repository_labels.tsv.gz"


class PpiSite(PreparedDataset):
    """Residues of protein-protein interfaces on single chains, without the partner; for tests only."""

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the tables, or those of the repository with the labels of the package."""
        if source.has("labels.tsv.gz"):
            return read_site_tables(source, {"ppi_site": "label"})
        return read_repository_labels(source, FOLDER / TABLE, {"ppi_site": "label"})
