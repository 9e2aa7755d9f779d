"""Dataset ``ddg_megascale``: folding free energies of the Mega-scale subset of BioEmu's benchmark."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from protgraph_plugins.mutations import MutationDataset, SourceVariant
from protgraph_plugins.published import SourceFolder, SourceProtein

__all__ = ["DdgMegascale"]
ENTRY_POINTS = {"protgraph.datasets": {"ddg_megascale": "DdgMegascale"}}

FOLDER = "bioemu_benchmarks/assets/folding_free_energies_benchmark_0.1/folding_free_energies"


class DdgMegascale(MutationDataset):
    """One to three mutants of each of 97 small domains; for tests only.

    The source is the repository bioemu-benchmarks: ``system_info.csv`` and ``reference_wildtypes`` of its benchmark.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the wild types."""
        for name in dict.fromkeys(row["name_wt"] for row in _rows(source)):
            path = source.path(f"{FOLDER}/reference_wildtypes/{name}.pdb")
            yield SourceProtein(name, path, "test", ("A",))

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mutants; rows of wild types have no variant."""
        for number, row in enumerate(_rows(source), 1):
            if row["mutant"] == "True":
                mutations = _mutations(row["name"])
                yield SourceVariant(
                    f"system_info.csv row {number}", row["name_wt"], mutations, "test", float(row["ddg_exp"])
                )


def _rows(source: SourceFolder) -> list[dict[str, str]]:
    with source.path(f"{FOLDER}/system_info.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _mutations(name: str) -> str:
    """Return the mutations of a mutant, "1ENH__L32G_F43N", sorted by residue: "A:L32G,A:F43N"."""
    texts = name.split("__")[1].split("_")
    return ",".join(f"A:{text}" for text in sorted(texts, key=lambda text: int(text[1:-1])))
