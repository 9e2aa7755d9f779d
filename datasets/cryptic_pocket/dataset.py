"""Dataset ``cryptic_pocket``: residues of cryptic pockets, from PocketMiner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_site_tables
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["CrypticPocket"]
ENTRY_POINTS = {"protgraph.datasets": {"cryptic_pocket": "CrypticPocket"}}


class CrypticPocket(PreparedDataset):
    """Residues that line a cryptic pocket, on apo structures; for validation and test only."""

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the tables."""
        return read_site_tables(source, {"cryptic_pocket": "label"})
