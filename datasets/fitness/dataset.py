"""Datasets ``fitness``, ``fitness_mutation`` and ``fitness_position``: deep mutational scans with published splits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from protgraph.data.datasets.mutation_dataset import MutationDataset, SourceVariant, join_mutations
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein

__all__ = ["SETS", "Fitness", "FitnessMutation", "FitnessPosition"]
ENTRY_POINTS = {
    "protgraph.datasets": {
        "fitness": "Fitness",
        "fitness_mutation": "FitnessMutation",
        "fitness_position": "FitnessPosition",
    }
}

FOLDER = Path(__file__).resolve().parent
#: Set → structure, and protein: sets of one protein are homologs.
SETS = {
    "grb2-abundance": ("AF-P62993-F1-model_v4_trunc_p", "grb2"),
    "grb2-binding": ("AF-P62993-F1-model_v4_trunc_p", "grb2"),
    "dlg4-2022-abundance": ("6qji_trunc_2022", "dlg4"),
    "dlg4-2022-binding": ("6qji_trunc_2022", "dlg4"),
    "pab1": ("pab1_cm", "pab1"),
    "pten-abundance": ("AF-P60484-F1-model_v4_p", "pten"),
    "pten-activity": ("AF-P60484-F1-model_v4_p", "pten"),
    "tem-1": ("AF-Q6SJ61-F1-model_v4_p", "tem-1"),
    "ube4b": ("ube4b_cm", "ube4b"),
}
_SPLITS = {"r": "train", "v": "val", "t": "test", "s": "test", "": "left_out"}


class Fitness(MutationDataset):
    """Random splits of each set; the test is the published "supertest", a tenth of the variants.

    The source is a folder with a table per set and ``structures.tar.xz``.
    """

    card_path = FOLDER / "dataset.toml"
    sign = -1
    column: ClassVar[str] = "standard_0"
    """Column of the tables with the split."""

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the structure of each set."""
        folder = source.unpacked("structures.tar.xz") / "structures"
        for name, (file, protein) in SETS.items():
            yield SourceProtein(name, folder / f"{file}.bcif", "", ("A",), protein)

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the variants of all sets, with the scores of EVE."""
        for name in SETS:
            for number, row in enumerate(read_tsv(source.path(f"{name}.tsv.gz")), 1):
                yield SourceVariant(
                    f"{name}.tsv row {number}",
                    name,
                    join_mutations(row),
                    _SPLITS[row[self.column]],
                    float(row["score"]),
                    {"EVE": float(row["pred_EVE"])} if row["pred_EVE"] else {},
                )


class FitnessMutation(Fitness):
    """The substitutions of the test are not in train or val."""

    card_path = FOLDER / "mutation.toml"
    column = "mutation_0"


class FitnessPosition(Fitness):
    """The positions of the test are not in train or val."""

    card_path = FOLDER / "position.toml"
    column = "position_0"
