"""Dataset ``sugar_site``: carbohydrate-binding residues of CAPSIF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_site_tables, read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["SugarSite"]
ENTRY_POINTS = {"protgraph.datasets": {"sugar_site": "SugarSite"}}


class SugarSite(PreparedDataset):
    """Residues that touch a carbohydrate, in crystal structures without their ligands.

    The proteins of ``val`` and ``test`` without a homolog in training are also in ``val_no_homolog`` and
    ``test_no_homolog``, as examples of their own.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the tables, then those of ``val_no_homolog`` and ``test_no_homolog``."""
        homologs = {(row["pair"], row["query"]) for row in read_tsv(source.path("leaks.tsv"))}
        proteins = list(read_site_tables(source, {"sugar_site": "label"}))
        yield from proteins
        for protein in proteins:
            has_homolog = (f"{protein.split}~train", f"{protein.id}.bcif") in homologs
            if protein.split != "train" and not has_homolog:
                yield replace(protein, id=f"{protein.id}_no_homolog", split=f"{protein.split}_no_homolog")
