"""Dataset ``pdb_core``: single chains of 259 PDB entries."""

from __future__ import annotations

import csv
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from protgraph.data.datasets import Dataset, Example, Labels, ResidueLabels, load_card

__all__ = ["PdbCore"]
ENTRY_POINTS = {"protgraph.datasets": {"pdb_core": "PdbCore"}}

FOLDER = Path(__file__).resolve().parent
DSSP3 = {"H": 0, "G": 0, "I": 0, "E": 1, "B": 1, "C": 2, "T": 2, "S": 2}  # to H, E, C as 0, 1, 2
#: Tasks whose training split has only the first of several copies of a chain in an entry.
FIRST_COPY_TASKS = (
    *("secondary_structure", "inverse_folding", "b_factor", "structure_denoising"),
    "structure_prediction",
    *("masked_lm", "next_residue", "contact"),
)
COLUMN = {"secondary_structure": "dssp8", "ligand_binding": "ligand_contact", "interface": "interface"}


class PdbCore(Dataset):
    """Single chains of 259 PDB entries with homology-aware splits.

    Tasks: secondary_structure, ligand_binding, interface, inverse_folding, b_factor, structure_denoising,
    structure_prediction, masked_lm, next_residue and contact. Each example is a single chain: interfaces are predicted
    without the partner, ligand sites without the ligand. The card defines the chains of each task.

    Examples
    --------
    >>> example = PdbCore().examples("secondary_structure", "ts50")[0]
    >>> example.id, example.chains
    ('1ahs_A', ('A',))
    """

    def __init__(self) -> None:
        self.card = load_card(FOLDER / "dataset.toml")

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the chains of a task, of all splits or of one."""
        self._task(task)
        examples, copies = [], set()
        for row in self._chains:
            if split not in (None, row["split"]) or not _is_included(task, row):
                continue
            copy = row["entry"], row["sequence"]
            if row["split"] == "train" and task in FIRST_COPY_TASKS:
                if copy in copies:
                    continue
                copies.add(copy)
            path = FOLDER / "structures" / f"{row['entry']}.bcif"
            resolution = float(row["resolution"]) if row["resolution"] else None
            name, chains = f"{row['entry']}_{row['chain']}", (row["chain"],)
            examples.append(Example(name, path, chains, row["split"], resolution=resolution))
        return examples

    def links(self, example: Example) -> frozenset[str]:
        """Return the connected component of sequence clusters and entries that the chain is in."""
        return frozenset([self._components[example.path.stem, example.chains[0]]])

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of a chain; None if the task computes them."""
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
    def _components(self) -> dict[tuple[str, str], str]:
        return {(row["entry"], row["chain"]): row["component"] for row in self._chains}

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


def _is_included(task: str, row: dict[str, str]) -> bool:
    if task == "ligand_binding":
        return row["ligand_complete"] == "1" and row["n_ligand_residues_contact"] != "0"
    if task == "interface":
        return row["interface_complete"] in ("1", "pair") and row["n_interface_residues"] != "0"
    if task == "b_factor":
        return row["has_bfactor"] == "1" and row["method"] == "X-RAY DIFFRACTION"
    return True
