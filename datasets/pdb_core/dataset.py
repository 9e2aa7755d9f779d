"""The embedded dataset as a :class:`~protgraph.data.datasets.dataset.Dataset`: one chain is one protein."""

from __future__ import annotations

import csv
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from protgraph.data.datasets.card import load_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels, ResidueLabels

__all__ = ["PdbCore"]
ENTRY_POINTS = {"protgraph.datasets": {"pdb_core": "PdbCore"}}

FOLDER = Path(__file__).resolve().parent
DSSP3 = {"H": 0, "G": 0, "I": 0, "E": 1, "B": 1, "C": 2, "T": 2, "S": 2}  # to H, E, C
#: In whose training split the first of an entry's copies of a chain stands for all.
ONE_OF_COPIES = (
    *("secondary_structure", "inverse_folding", "b_factor", "structure_denoising"),
    "structure_prediction",
    *("masked_lm", "next_residue", "contact"),
)
COLUMN = {"secondary_structure": "dssp8", "ligand_binding": "ligand_contact", "interface": "interface"}


class PdbCore(Dataset):
    """Chains of 259 PDB entries; tasks secondary_structure, ligand_binding, interface, inverse_folding, b_factor,
    structure_denoising, structure_prediction, masked_lm, next_residue and contact.

    Every example is one chain alone, so an interface is predicted without its partner, and a ligand's site without
    the ligand. Which chains take part in a task is written on the card.

    Examples
    --------
    >>> example = PdbCore().examples("secondary_structure", "ts50")[0]
    >>> example.id, example.chains
    ('1ahs_A', ('A',))
    """

    def __init__(self) -> None:
        self.card = load_card(FOLDER / "dataset.toml")

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        self._task(task)
        found, seen = [], set()
        for row in self._chains:
            if split not in (None, row["split"]) or not _takes_part(task, row):
                continue
            copy = row["entry"], row["sequence"]
            if row["split"] == "train" and task in ONE_OF_COPIES:
                if copy in seen:
                    continue
                seen.add(copy)
            path = FOLDER / "structures" / f"{row['entry']}.bcif"
            found.append(Example(f"{row['entry']}_{row['chain']}", path, (row["chain"],), row["split"]))
        return found

    def labels(self, task: str, example: Example) -> Labels | None:
        self._task(task)
        if task not in COLUMN:
            return None
        rows = slice(*self._rows[example.path.stem, example.chains[0]])
        keys = (self._table[key][rows] for key in ("chain", "res_id", "ins_code"))
        return ResidueLabels(*keys, self._table[COLUMN[task]][rows], name=example.id)

    @cached_property
    def _chains(self) -> list[dict[str, str]]:
        """The rows of chains.tsv."""
        with open(FOLDER / "chains.tsv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    @cached_property
    def _table(self) -> dict[str, np.ndarray]:
        """The columns of labels.parquet; labels as :class:`~protgraph.data.datasets.target.Target` has them."""
        table = pq.read_table(FOLDER / "labels.parquet").to_pydict()
        columns = {key: np.array(table[key]) for key in ("entry", "chain", "res_id", "ins_code")}
        columns["dssp8"] = np.array([DSSP3.get(letter, -1) for letter in table["dssp8"]])
        for key in ("ligand_contact", "interface"):
            columns[key] = np.array(table[key], dtype=np.float32)  # None becomes NaN
        return columns

    @cached_property
    def _rows(self) -> dict[tuple[str, str], tuple[int, int]]:
        """First and last row (exclusive) of each chain."""
        entry, chain = self._table["entry"], self._table["chain"]
        first = np.flatnonzero(np.r_[True, (entry[1:] != entry[:-1]) | (chain[1:] != chain[:-1])])
        ends = [*first[1:].tolist(), len(entry)]
        return {(str(entry[a]), str(chain[a])): (a, b) for a, b in zip(first.tolist(), ends, strict=True)}


def _takes_part(task: str, row: dict[str, str]) -> bool:
    if task == "ligand_binding":
        return row["ligand_complete"] == "1" and row["n_ligand_residues_contact"] != "0"
    if task == "interface":
        return row["interface_complete"] in ("1", "pair") and row["n_interface_residues"] != "0"
    if task == "b_factor":
        return row["has_bfactor"] == "1" and row["method"] == "X-RAY DIFFRACTION"
    return True
