"""Datasets ``paratope`` and ``paratope_expanded``: antigen-binding residues of antibodies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_site_tables
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["Paratope", "ParatopeExpanded"]
ENTRY_POINTS = {"protgraph.datasets": {"paratope": "Paratope", "paratope_expanded": "ParatopeExpanded"}}

FOLDER = Path(__file__).resolve().parent


class Paratope(PreparedDataset):
    """Residues of antibody variable domains (chains H and L) that touch the antigen, splits of PECAN."""

    card_path = FOLDER / "dataset.toml"
    split_column: ClassVar[str] = "split"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the antibodies of the set; ``paratope_cdr`` has the labels in and beside the CDRs alone."""
        labels = {"paratope": "label", "paratope_cdr": ("label", "cdr_plus2")}
        return read_site_tables(source, labels, split=self.split_column, cluster="cluster90")


class ParatopeExpanded(Paratope):
    """The same for the set Expanded of Paragraph."""

    card_path = FOLDER / "expanded.toml"
    split_column = "split_expanded"
