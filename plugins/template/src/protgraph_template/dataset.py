"""Dataset: a card, examples in splits, and their labels."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import protgraph as pg

__all__ = ["TemplateDisulfides"]

TABLE = Path(__file__).with_name("disulfides.csv")
TASK = "disulfide"


class TemplateDisulfides(pg.Dataset):
    """Residues in disulfide bonds of nine small proteins, with the structure files of the dataset pdb_core."""

    def __init__(self) -> None:
        with TABLE.open(encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))
        split_of = {row["example"]: row["split"] for row in self.rows}
        files = {example.id: example for example in pg.datasets.create("pdb_core").examples("contact")}
        self.found = [pg.Example(name, files[name].path, files[name].chains, split_of[name]) for name in split_of]
        splits = list(split_of.values())
        counts = {split: pg.SplitCount(splits.count(split)) for split in ("train", "val", "test")}
        target = pg.Target(TASK, "node", "multilabel", 1, ("disulfide",))
        task = pg.TaskCard(target, "SG atoms of two cysteines within 2.5 Å", "all proteins", counts)
        self.card = pg.DatasetCard(
            name="template_disulfides",
            version="1",  # change it with proteins, labels or splits: prepared data are made again
            license="CC0-1.0",
            citation="Berman et al. 2000, Nucleic Acids Research 28, 235 (Protein Data Bank)",
            description="Nine chains of the Protein Data Bank with 44 to 75 residues and at least one disulfide bond.",
            split_rule="by hand; no two splits share a sequence",
            splits=counts,
            tasks={TASK: task},
        )

    def examples(self, task: str, split: str | None = None) -> list[pg.Example]:
        """Return the proteins of a split, or all."""
        return [example for example in self.found if split in (None, example.split)]

    def labels(self, task: str, example: pg.Example) -> pg.ResidueLabels:
        """Return 1 for each residue of the example in a disulfide bond, 0 for the others."""
        own = [row for row in self.rows if row["example"] == example.id]
        bonded = {int(row[key]) for row in own for key in ("res_id", "partner")}
        residues = self.read(example)
        values = np.array([number in bonded for number in residues.res_id.tolist()], np.float32)  # (N,) 0 or 1
        return pg.ResidueLabels(residues.chain, residues.res_id, residues.ins_code, values, name=example.id)
