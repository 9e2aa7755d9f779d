"""Datasets ``paratope``, ``paratope_expanded`` and ``paratope_joined``: antigen-binding residues of antibodies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_repository_labels

__all__ = ["Paratope", "ParatopeExpanded", "ParatopeJoined"]
ENTRY_POINTS = {
    "protgraph.datasets": {
        "paratope": "Paratope",
        "paratope_expanded": "ParatopeExpanded",
        "paratope_joined": "ParatopeJoined",
    }
}

FOLDER = Path(__file__).resolve().parent
TABLE = "repository_labels.tsv.gz"


class Paratope(PreparedDataset):
    """Residues of antibody variable domains (chains H and L) that touch the antigen, splits of PECAN."""

    card_path = FOLDER / "dataset.toml"
    split_column: ClassVar[str] = "split"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the antibodies of the set; ``paratope_cdr`` has the labels in and beside the CDRs alone."""
        labels = {"paratope": "label", "paratope_cdr": ("label", "cdr_plus2")}
        return read_repository_labels(source, FOLDER / TABLE, labels, split=self.split_column)


class ParatopeExpanded(Paratope):
    """The same for the set Expanded of Paragraph."""

    card_path = FOLDER / "expanded.toml"
    split_column = "split_expanded"


class ParatopeJoined(Paratope):
    """Validation and test of PECAN; training antibodies of both sets that are not like those.

    An antibody is left out of training if it and an antibody of validation or test are of one PDB entry, of one
    cluster at 90 % identity, or have the same third loop of the heavy chain.
    """

    card_path = FOLDER / "joined.toml"
    split_column = "split_joined"
