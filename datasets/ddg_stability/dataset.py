"""Datasets ``ddg_stability``, ``ddg_ssym`` and ``ddg_s461``: change of the folding free energy on mutation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from protgraph_datasets.ddg_stability.korpm_tables import (
    S461_METHODS,
    S669_METHODS,
    SSYM_METHODS,
    read_predictions,
    read_symmetric,
)
from protgraph_plugins.mutations import MutationDataset, SourceVariant
from protgraph_plugins.published import SourceFolder, SourceProtein, read_tsv

__all__ = ["DdgS461", "DdgSsym", "DdgStability"]
ENTRY_POINTS = {"protgraph.datasets": {"ddg_s461": "DdgS461", "ddg_ssym": "DdgSsym", "ddg_stability": "DdgStability"}}

FOLDER = Path(__file__).resolve().parent
PROSTATA, KORPM = "prostata_pdb_and_datasets.tar.xz", "korpm_s461_ssym_results.tar.xz"


class DdgStability(MutationDataset):
    """Single mutations of PROSTATA's collection for training, S669 for the test.

    The source is a folder with the archives of both repositories, or with their unpacked files.
    """

    card_path = FOLDER / "dataset.toml"
    structures: ClassVar[str] = "structures.tsv"
    variants_table: ClassVar[str] = "variants.tsv.gz"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of the table of the package; an entry that the source lacks is a failure of its variants."""
        folder = _folder(source, PROSTATA, "PDB")
        for row in read_tsv(FOLDER / self.structures):
            if (folder / row["path"]).is_file():
                yield SourceProtein(row["id"], folder / row["path"], row["split"], (row["id"][4],), row["cluster"])

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mutations of the table of the package, with published predictions."""
        predictions = self.predictions(source)
        for row in read_tsv(FOLDER / self.variants_table):
            key = row["structure"], row["mutations"]
            columns = {name: values[key] for name, values in predictions.items() if key in values}
            if row.get("pred_PROSTATA"):
                columns["PROSTATA"] = float(row["pred_PROSTATA"])
            yield SourceVariant(row["row"], *key, row["split"], float(row["ddg"]), columns)

    def predictions(self, source: SourceFolder) -> Mapping[str, Mapping[tuple[str, str], float]]:
        """Return the predictions of each published method by structure and mutation, positive = destabilizing."""
        folder = _folder(source, KORPM, "S461_results") / "S461_results"
        tables = {name: read_predictions(folder / file, columns) for name, (file, columns) in S669_METHODS.items()}
        return {name: {key: value for key, (_, value) in table.items()} for name, table in tables.items()}


class DdgSsym(DdgStability):
    """Ssym: 342 mutations, and their reverses on the structures of the mutants; for tests only."""

    card_path = FOLDER / "ssym.toml"
    structures = "ssym_structures.tsv"
    variants_table = "ssym_variants.tsv.gz"

    def predictions(self, source: SourceFolder) -> Mapping[str, Mapping[tuple[str, str], float]]:
        """Return the predictions of each published method for both directions."""
        folder = _folder(source, KORPM, "Ssym_results") / "Ssym_results"
        return {name: read_symmetric(folder / file) for name, file in SSYM_METHODS.items()}


class DdgS461(MutationDataset):
    """S461: the mutations of S669 whose values and structures the authors of KORPM verified; for tests only."""

    card_path = FOLDER / "s461.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of S461, with the structures of its repository."""
        folder = _folder(source, KORPM, "S461_results")
        for structure in dict.fromkeys(structure for structure, _ in _s461(folder)):
            path = folder / "S461" / f"{structure[:4]}.pdb"
            if path.is_file():
                yield SourceProtein(structure, path, "test", (structure[4],), structure)

    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the mutations with published predictions."""
        folder = _folder(source, KORPM, "S461_results")
        methods = {
            name: read_predictions(folder / "S461_results" / file, columns)
            for name, (file, columns) in S461_METHODS.items()
        }
        for number, (key, value) in enumerate(_s461(folder).items(), 1):
            columns = {name: values[key][1] for name, values in methods.items() if key in values}
            yield SourceVariant(f"S461.txt row {number}", *key, "test", value, columns)


def _s461(folder: Path) -> dict[tuple[str, str], float]:
    """Return the measured values of S461."""
    table = read_predictions(folder / "S461.txt", (1, 2, 2))
    return {key: value for key, (value, _) in table.items()}


def _folder(source: SourceFolder, archive: str, inside: str) -> Path:
    """Return the folder with the files of an archive: the source itself if it is unpacked there."""
    return source.folder if source.has(inside) else source.unpacked(archive)
