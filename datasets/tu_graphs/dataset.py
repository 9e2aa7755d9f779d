"""Datasets ``tu_enzymes`` and ``tu_proteins``: graphs of secondary-structure elements of TUDataset."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from protgraph.data.datasets.prepared_graphs import PreparedGraphs
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.data.datasets.tu_archive import GraphTable, read_tu_archive

__all__ = ["TuEnzymes", "TuProteins"]
ENTRY_POINTS = {"protgraph.datasets": {"tu_enzymes": "TuEnzymes", "tu_proteins": "TuProteins"}}

FOLDER = Path(__file__).resolve().parent


class TuEnzymes(PreparedGraphs):
    """ENZYMES: 600 graphs in six classes, with node labels and attributes.

    The source is the repository graph_nn (``data/ENZYMES.zip``), or a folder with the archive.
    """

    card_path = FOLDER / "enzymes.toml"
    archive: ClassVar[str] = "ENZYMES.zip"
    use_attributes: ClassVar[bool] = True

    def convert_graphs(self, source: SourceFolder) -> GraphTable:
        """Return the graphs of the archive."""
        inside = f"data/{self.archive}"
        path = source.path(inside if source.has(inside) else self.archive)
        return read_tu_archive(path, use_attributes=self.use_attributes)


class TuProteins(TuEnzymes):
    """PROTEINS: 1,113 graphs, enzyme or not, with node labels."""

    card_path = FOLDER / "proteins.toml"
    archive = "PROTEINS.zip"
    use_attributes = False
