"""Dataset ``affinity``: pockets with their ligands, and how tightly these bind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from protgraph_plugins.ligands import LigandAtoms, join_ligand, read_ligand_table
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_tsv, write_tsv

from protgraph.errors import DatasetError
from protgraph.structure import Structure, load_structure

__all__ = ["Affinity"]
ENTRY_POINTS = {"protgraph.datasets": {"affinity": "Affinity"}}

FOLDER = Path(__file__).resolve().parent
FOLDS = 5
#: Families with this remainder of their number are the validation split of a cold fold, unless they are in its test.
DIVISOR, REMAINDER = 10, 5
LIGANDS = "ligands.tsv.gz"


class Affinity(PreparedDataset):
    """Complexes of PDBbind with pK = −log10 of Kd or Ki, each file with its ligand.

    The source is a folder with ``complexes.tsv``, ``ligands.tsv.gz`` and ``pockets.tar.xz``. The five cold folds are
    label tables of the prepared folder, ``cold_0.csv`` to ``cold_4.csv``, for ``--data FOLDER/structures --labels``.
    """

    card_path = FOLDER / "dataset.toml"
    keeps_ligands = True

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the pockets with their ligands, in the order of ``complexes.tsv``."""
        folder = source.folder_or_archive("pockets", "pockets.tar.xz")
        ligands = read_ligand_table(source.path(LIGANDS))
        for row in read_tsv(source.path("complexes.tsv")):
            path = folder / row["file"]
            if not path.is_file():
                raise DatasetError(f"{row['file']} is not in the archive of pockets. Copy the folder again.")
            if row["pdb"] not in ligands:
                raise DatasetError(f"{LIGANDS} has no atoms of {row['pdb']!r}. Copy the folder again.")
            ligand = ligands[row["pdb"]]
            yield SourceProtein(
                row["pdb"],
                path,
                row["split"],
                cluster=row["family30"],
                protein_labels={"pK": float(row["pK"])},
                read=partial(_read_complex, path, ligand),
                content=path.read_bytes() + ligand.pos.tobytes() + "".join(ligand.element.tolist()).encode(),
            )

    def write_tables(self, source: SourceFolder, folder: Path, structures: Mapping[str, Path]) -> Sequence[str]:
        """Write a label table of each cold fold: test is the fold, val are other families, train is the rest."""
        rows = read_tsv(source.path("complexes.tsv"))
        names = []
        for fold in range(FOLDS):
            name = f"cold_{fold}.csv"
            lines = ["file,pK,split\n"]
            lines += [f"{row['pdb']}.bcif,{row['pK']},{_cold_split(row, fold)}\n" for row in rows]
            (folder / name).write_text("".join(lines), encoding="utf-8")
            names.append(name)
        origins = [(row["pdb"], row["kind"], row["year"], row["uniprot"], row["ligand"], row["smiles"]) for row in rows]
        write_tsv(folder / "origins.tsv", [("id", "kind", "year", "uniprot", "ligand", "smiles"), *origins])
        return (*names, "origins.tsv")


def _read_complex(path: Path, ligand: LigandAtoms) -> Structure:
    return join_ligand(load_structure(path), ligand)


def _cold_split(row: Mapping[str, str], fold: int) -> str:
    """Return the split of a complex in a cold fold; a tenth of the other families, by their number, is validation."""
    if int(row["split_cold"]) == fold:
        return "test"
    return "val" if int(row["family30"]) % DIVISOR == REMAINDER else "train"
