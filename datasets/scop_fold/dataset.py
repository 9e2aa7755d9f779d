"""Dataset ``scop_fold``: SCOPe folds of single-domain chains from five collections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray
from protgraph_datasets import pdb_core
from protgraph_datasets.ligysis.dataset import read_chain
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_tsv

from protgraph.structure import ALPHABET, THREE_LETTER, LossReport, Structure

__all__ = ["ScopFold", "read_backbone"]
ENTRY_POINTS = {"protgraph.datasets": {"scop_fold": "ScopFold"}}

FOLDER = Path(__file__).resolve().parent
PDB_CORE = Path(pdb_core.__file__).parent / "structures"
#: Collection → folder of a clone of its repository.
REPOSITORIES = {"ligysis": "LBS-comparison", "cgdms": "cgdms", "eigenfold": "EigenFold", "skempi_v2": "mutils"}
BACKBONE = ("N", "CA", "C")
RESIDUE_NAMES = dict(zip(ALPHABET, THREE_LETTER, strict=True))


class ScopFold(PreparedDataset):
    """Fold and class of chains that are one SCOPe domain; no superfamily is in two splits.

    The source is a folder with clones of the repositories of four collections, LBS-comparison, cgdms, EigenFold and
    mutils (at the commits of the card), or with all their files, as a download has them. Chains of ``pdb_core`` are
    those of the package.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains with the numbers of their fold and class on the card."""
        folds, classes = (self.card.tasks[task].target.names for task in ("scop_fold", "scop_class"))
        for row in read_tsv(FOLDER / "domains.tsv.gz"):
            fold = row["superfamily"].rpartition(".")[0]
            numbers = {"scop_fold": folds.index(fold), "scop_class": classes.index(fold.partition(".")[0])}
            path, read, chains = _path(source, row), None, (row["chain"],)
            if row["pool"] == "ligysis":
                read, chains = partial(read_chain, path, path.name.removesuffix(".trans.pdb")), None
            elif row["pool"] == "cgdms":
                read, chains = partial(read_backbone, path), None
            yield SourceProtein(
                f"{row['pool']}_{row['pdb']}_{row['chain']}",
                path,
                row["split"],
                chains,
                row["superfamily"],
                protein_labels={task: float(number) for task, number in numbers.items()},
                read=read,
            )


def _path(source: SourceFolder, row: dict[str, str]) -> Path:
    if row["pool"] == "pdb_core":
        return PDB_CORE / row["path"]
    in_clone = f"{REPOSITORIES[row['pool']]}/{row['path']}"
    return source.path(in_clone if source.has(in_clone) else row["path"])


def read_backbone(path: Path) -> Structure:
    """Return a chain of cgdms, whose file is named ``ENTRY_chain.txt``.

    Lines: sequence, secondary structure, then N, CA, C and the center of the side chain of each residue, Å; the center
    is left out. Residues are numbered from 1.
    """
    sequence, _, *lines = path.read_text(encoding="utf-8").splitlines()
    positions = np.array([line.split() for line in lines], np.float32).reshape(-1, 4, 3)[:, :3]
    atoms = AtomArray(len(BACKBONE) * len(sequence))
    atoms.coord = positions.reshape(-1, 3)
    atoms.chain_id[:] = path.stem.split("_")[1]
    atoms.res_id = np.repeat(np.arange(1, len(sequence) + 1), len(BACKBONE))
    atoms.res_name = np.repeat([RESIDUE_NAMES[letter] for letter in sequence], len(BACKBONE))
    atoms.atom_name = np.tile(BACKBONE, len(sequence))
    atoms.element = np.array([atom[0] for atom in atoms.atom_name.tolist()])
    atoms.set_annotation("b_factor", np.zeros(len(atoms), np.float32))
    atoms.set_annotation("occupancy", np.ones(len(atoms), np.float32))
    return Structure(path.stem, atoms, str(path), "txt", LossReport())
