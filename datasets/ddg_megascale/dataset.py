"""Dataset ``ddg_megascale``: folding free energies of the Mega-scale subset of BioEmu's benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from protgraph.data.datasets.mutation_dataset import MutationDataset, SourceVariant, join_mutations
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["DdgMegascale"]
ENTRY_POINTS = {"protgraph.datasets": {"ddg_megascale": "DdgMegascale"}}


class DdgMegascale(MutationDataset):
    """One to three mutants of each of 97 small domains; for tests only.

    The source is a folder with ``mutations.tsv.gz`` and ``structures.tar.xz``.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the wild types."""
        folder = source.unpacked("structures.tar.xz") / "structures"
        rows = read_tsv(source.path("mutations.tsv.gz"))
        for name in dict.fromkeys(row["wild_type_name"] for row in rows):
            yield SourceProtein(name, folder / f"{name}.bcif", "test", ("A",))

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mutants; rows of wild types have no variant."""
        for number, row in enumerate(read_tsv(source.path("mutations.tsv.gz")), 1):
            if row["is_mutant"] == "1":
                where = f"mutations.tsv row {number}"
                yield SourceVariant(where, row["wild_type_name"], join_mutations(row), "test", float(row["ddg"]))
