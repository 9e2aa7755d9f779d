"""Dataset ``ppi_site``: interface residues of Test_60."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_repository_labels

__all__ = ["PpiSite"]
ENTRY_POINTS = {"protgraph.datasets": {"ppi_site": "PpiSite"}}

FOLDER = Path(__file__).resolve().parent
TABLE = "repository_labels.tsv.gz"


class PpiSite(PreparedDataset):
    """Residues of protein-protein interfaces on single chains, without the partner; for tests only."""

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the repository with the labels of the package."""
        return read_repository_labels(source, FOLDER / TABLE, {"ppi_site": "label"})
