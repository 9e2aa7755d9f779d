"""Dataset ``sugar_site``: carbohydrate-binding residues of CAPSIF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.repository_labels import read_repository_labels
from protgraph.data.datasets.site_tables import read_site_tables, read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["SugarSite"]
ENTRY_POINTS = {"protgraph.datasets": {"sugar_site": "SugarSite"}}

FOLDER = Path(__file__).resolve().parent
TABLE = "repository_labels.tsv.gz"


class SugarSite(PreparedDataset):
    """Residues that touch a carbohydrate, in crystal structures without their ligands.

    The proteins of ``val`` and ``test`` without a homolog in training are also in ``val_no_homolog`` and
    ``test_no_homolog``, as examples of their own.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the tables, or of the repository, then ``val_no_homolog`` and ``test_no_homolog``."""
        labels = {"sugar_site": "label"}
        if source.has("labels.tsv.gz"):
            proteins = list(read_site_tables(source, labels))
            homologs = {(row["pair"], row["query"]) for row in read_tsv(source.path("leaks.tsv"))}
            related = {p.id for p in proteins if (f"{p.split}~train", f"{p.id}.bcif") in homologs}
        else:
            proteins = list(read_repository_labels(source, FOLDER / TABLE, labels))
            related = {row["id"] for row in read_tsv(FOLDER / TABLE) if row["has_homolog"] == "1"}
        yield from proteins
        for protein in proteins:
            has_homolog = protein.id in related
            if protein.split != "train" and not has_homolog:
                yield replace(protein, id=f"{protein.id}_no_homolog", split=f"{protein.split}_no_homolog")
