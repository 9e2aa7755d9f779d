"""Datasets ``paratope``, ``paratope_expanded`` and ``paratope_joined``: antigen-binding residues of antibodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.repository_labels import read_repository_labels
from protgraph.data.datasets.site_tables import read_site_tables, read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

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
H3 = range(93, 103)  # Martin numbers


class Paratope(PreparedDataset):
    """Residues of antibody variable domains (chains H and L) that touch the antigen, splits of PECAN."""

    card_path = FOLDER / "dataset.toml"
    split_column: ClassVar[str] = "split"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the antibodies of the set; ``paratope_cdr`` has the labels in and beside the CDRs alone."""
        labels = {"paratope": "label", "paratope_cdr": ("label", "cdr_plus2")}
        if source.has("labels.tsv.gz"):
            return read_site_tables(source, labels, split=self.split_of(source), cluster="cluster90")
        return read_repository_labels(source, FOLDER / TABLE, labels, split=self.split_column)

    def split_of(self, source: SourceFolder) -> Callable[[Mapping[str, str]], str]:
        """Return the function from a row of ``splits.tsv`` to the split of the antibody, "" for none."""
        return lambda row: row[self.split_column]


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

    def split_of(self, source: SourceFolder) -> Callable[[Mapping[str, str]], str]:
        """Return the function from a row of ``splits.tsv`` to the split."""
        loops: dict[str, str] = {}
        for row in read_tsv(source.path("labels.tsv.gz")):
            if row["chain"] == "H" and int(row["res_id"]) in H3:
                loops[row["file"]] = f"{loops.get(row['file'], '')} {row['res_name']}"

        def properties(row: Mapping[str, str]) -> set[tuple[str, str]]:
            name = row["file"]
            return {("entry", name[:4]), ("cluster", row["cluster90"]), ("H3", loops[name])}

        held = [row for row in read_tsv(source.path("splits.tsv")) if row["split"] in ("val", "test")]
        known = set().union(*map(properties, held))

        def split(row: Mapping[str, str]) -> str:
            if row["split"] in ("val", "test"):
                return row["split"]
            return "" if properties(row) & known else "train"

        return split
