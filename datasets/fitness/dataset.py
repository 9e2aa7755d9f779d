"""Datasets ``fitness``, ``fitness_mutation`` and ``fitness_position``: deep mutational scans with published splits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from protgraph_plugins.mutations import MutationDataset, SourceVariant
from protgraph_plugins.published import SourceFolder, SourceProtein, read_tsv

from protgraph.errors import DatasetError

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
    "dlg4-2022-abundance": ("6qji_p_trunc_2022", "dlg4"),
    "dlg4-2022-binding": ("6qji_p_trunc_2022", "dlg4"),
    "pab1": ("pab1_cm", "pab1"),
    "pten-abundance": ("AF-P60484-F1-model_v4_p", "pten"),
    "pten-activity": ("AF-P60484-F1-model_v4_p", "pten"),
    "tem-1": ("AF-Q6SJ61-F1-model_v4_p", "tem-1"),
    "ube4b": ("ube4b_cm", "ube4b"),
}
#: File of row numbers in the folder of a split → split; "stest" is the "supertest", which no split trains on.
_SPLIT_FILES = {"train.txt": "train", "val.txt": "val", "test.txt": "test", "stest.txt": "test"}
_EVE_UNIT = 1e-5  # scores of EVE are stored as integers


class Fitness(MutationDataset):
    """Random splits of each set; the test is the published "supertest", a tenth of the variants.

    The source is the repository metl-pub: ``data/dms_data/SET/SET.tsv`` with the folder ``splits`` beside it, and
    ``data/pdb_files``. The scores of EVE, which it has in a format of pandas, are in the package.
    """

    card_path = FOLDER / "dataset.toml"
    sign = -1
    split_kind: ClassVar[str] = "standard"
    """Column of ``splits.tsv`` with the folder of the split."""

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the structure of each set."""
        for name, (file, protein) in SETS.items():
            yield SourceProtein(name, source.path(f"data/pdb_files/{file}.pdb"), "", ("A",), protein)

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the variants of all sets, with the scores of EVE."""
        folders = {row["set"]: row[self.split_kind] for row in read_tsv(FOLDER / "splits.tsv")}
        scores_of_eve = np.load(FOLDER / "eve.npz")
        for name in SETS:
            folder = f"data/dms_data/{name}"
            rows = read_tsv(source.path(f"{folder}/{name}.tsv"))
            splits = _split_of_rows(source.path(f"{folder}/splits/main/{folders[name]}"), len(rows))
            eve = scores_of_eve[name]
            if len(eve) != len(rows):
                raise DatasetError(f"{name}.tsv has {len(rows)} variants, the package has {len(eve)}. Get it again.")
            for number, row in enumerate(rows):
                yield SourceVariant(
                    f"{name}.tsv row {number + 1}",
                    name,
                    _numbered_from_one(row["variant"]),
                    splits[number],
                    float(row["score"]),
                    {"EVE": round(float(eve[number]) * _EVE_UNIT, 5)},
                )


def _split_of_rows(folder: Path, rows: int) -> list[str]:
    """Return the split of each row; "left_out" for rows that are in no file of the folder."""
    splits = ["left_out"] * rows
    for file, split in _SPLIT_FILES.items():
        if (folder / file).is_file():
            for number in (folder / file).read_text(encoding="utf-8").split():
                splits[int(number)] = split
    return splits


def _numbered_from_one(variant: str) -> str:
    """Return a variant of the source, "T0A,V2C", with chain and residue numbers of the structure, "A:T1A,A:V3C"."""
    mutations = sorted((int(text[1:-1]) + 1, text[0], text[-1]) for text in variant.split(","))
    return ",".join(f"A:{wild_type}{number}{mutant}" for number, wild_type, mutant in mutations)


class FitnessMutation(Fitness):
    """The substitutions of the test are not in train or val."""

    card_path = FOLDER / "mutation.toml"
    split_kind = "mutation"


class FitnessPosition(Fitness):
    """The positions of the test are not in train or val."""

    card_path = FOLDER / "position.toml"
    split_kind = "position"
