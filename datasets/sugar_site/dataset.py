"""Dataset ``sugar_site``: carbohydrate-binding residues of CAPSIF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_repository_labels, read_tsv

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
        """Yield the proteins of the repository, then ``val_no_homolog`` and ``test_no_homolog``."""
        proteins = list(read_repository_labels(source, FOLDER / TABLE, {"sugar_site": "label"}))
        yield from proteins
        with_homolog = {row["id"] for row in read_tsv(FOLDER / TABLE) if row["has_homolog"] == "1"}
        for protein in proteins:
            if protein.split != "train" and protein.id not in with_homolog:
                yield replace(protein, id=f"{protein.id}_no_homolog", split=f"{protein.split}_no_homolog")
