"""Dataset ``cryptic_pocket``: residues of cryptic pockets, from PocketMiner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_repository_labels

from protgraph.structure import Structure, load_structure

__all__ = ["CrypticPocket"]
ENTRY_POINTS = {"protgraph.datasets": {"cryptic_pocket": "CrypticPocket"}}

FOLDER = Path(__file__).resolve().parent
TABLE = "repository_labels.tsv.gz"


class CrypticPocket(PreparedDataset):
    """Residues that line a cryptic pocket, on apo structures; for validation and test only."""

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the repository with the labels of the package."""
        return read_repository_labels(source, FOLDER / TABLE, {"cryptic_pocket": "label"}, load=_load_structure)


def _load_structure(path: Path) -> Structure:
    """Read a file; of two residues in a row with one number (1btp has lost its insertion codes), the first gets A."""
    structure = load_structure(path)
    atoms = structure.atoms.copy()
    first = np.flatnonzero(atoms.atom_name == "N")
    numbers = atoms.res_id[first]
    repeated = np.flatnonzero((numbers[1:] == numbers[:-1]) & (atoms.ins_code[first[1:]] == atoms.ins_code[first[:-1]]))
    codes = atoms.ins_code.copy()
    for i in repeated.tolist():
        codes[first[i] : first[i + 1]] = "A"
    atoms.ins_code = codes
    return replace(structure, atoms=atoms)
