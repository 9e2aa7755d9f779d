"""Base class of datasets in a folder that ``protgraph data prepare`` writes once from its source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
from protgraph_plugins.published.source_folder import SourceFolder, SourceProtein, read_tsv

from protgraph.data.datasets import Example, LabelRows, TableDataset, Target, load_card
from protgraph.errors import DatasetError
from protgraph.structure.io import cache_dir

__all__ = ["EXAMPLES", "MANIFEST", "PROTEIN_LABELS", "RESIDUE_LABELS", "STRUCTURES", "PreparedDataset"]

EXAMPLES, MANIFEST, STRUCTURES = "examples.tsv", "manifest.tsv", "structures"
RESIDUE_LABELS, PROTEIN_LABELS = "residue_labels.parquet", "protein_labels.parquet"


class PreparedDataset(TableDataset):
    """Dataset of a card and a function that reads its source; its files are prepared once.

    A subclass sets ``card_path`` and implements :meth:`convert`. Everything else is common to all datasets.

    Parameters
    ----------
    folder : str, optional
        Prepared folder. Default: ``datasets/NAME-VERSION`` in the cache folder.
    """

    card_path: ClassVar[Path]
    """``dataset.toml`` of the package."""
    keeps_ligands: ClassVar[bool] = False
    """True: the prepared structures keep their ligands, which models then may read."""

    def __init__(self, *, folder: str | None = None) -> None:
        self.card = load_card(self.card_path)
        self.folder = Path(folder) if folder else cache_dir() / "datasets" / f"{self.card.name}-{self.card.version}"

    @abstractmethod
    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of a source folder, which is laid out as the public repository of the card."""

    def write_tables(self, source: SourceFolder, folder: Path, structures: Mapping[str, Path]) -> Sequence[str]:
        """Write further tables into ``folder`` after the proteins of :meth:`convert`, and return their names.

        ``structures`` has the written file of each protein by its id. By default there are no further tables.
        """
        return ()

    @property
    def is_prepared(self) -> bool:
        """True if the folder is complete."""
        return (self.folder / MANIFEST).is_file()

    @property
    def place(self) -> str:
        """The prepared folder, or that it is not prepared."""
        return str(self.folder) if self.is_prepared else "not prepared"

    @cached_property
    def rows(self) -> dict[str, dict[str, str]]:
        """Example → its row of ``examples.tsv``."""
        if not self.is_prepared:
            raise DatasetError(
                f"dataset {self.name!r} is not prepared (no {str(self.folder)!r}). Prepare it once: "
                f"protgraph data prepare {self.name} --from FOLDER, or --download."
            )
        return {row["id"]: row for row in read_tsv(self.folder / EXAMPLES)}

    def links(self, example: Example) -> frozenset[str]:
        """Return the sequence cluster of an example."""
        cluster = self.rows[example.id]["cluster"]
        return frozenset({f"cluster {cluster}"}) if cluster else super().links(example)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a task, of all splits or of one: the proteins with a known label."""
        counts, examples = self._task(task).counts, self._examples.values()
        labeled = self._labeled(task)
        found = (example for example in examples if example.split in counts)
        found = (example for example in found if labeled is None or example.path.name in labeled)
        return [example for example in found if split in (None, example.split)]

    def label_rows(self, task: str) -> LabelRows | None:
        """Return the labels of all examples of a task; None if the task computes them."""
        card = self._task(task)
        if card.is_derived:
            return None
        if task not in self._label_rows:
            if card.target.level == "graph":
                values, rows, keys = self._protein_table[task], self._protein_rows, ()
            else:
                values, rows = self._residue_table[task], self._residue_rows
                keys = tuple(self._residue_table[key] for key in ("chain", "res_id", "ins_code"))
            self._label_rows[task] = LabelRows(_values(values, card.target), rows, keys)
        return self._label_rows[task]

    def _labeled(self, task: str) -> frozenset[str] | None:
        """Return the files with a known label; None if the task computes its labels."""
        card = self._task(task)
        if card.is_derived:
            return None
        if task not in self._labeled_files:
            table = self._protein_table if card.target.level == "graph" else self._residue_table
            self._labeled_files[task] = frozenset(table["file"][~np.isnan(table[task])].tolist())
        return self._labeled_files[task]

    @cached_property
    def _label_rows(self) -> dict[str, LabelRows]:
        return {}

    @cached_property
    def _labeled_files(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def _examples(self) -> dict[str, Example]:
        """The examples by id, in the order of the table."""
        folder = self.folder / STRUCTURES
        return {row["id"]: Example(row["id"], folder / row["file"], None, row["split"]) for row in self.rows.values()}

    @cached_property
    def _residue_table(self) -> dict[str, np.ndarray]:
        return _read_columns(self.folder / RESIDUE_LABELS)

    @cached_property
    def _residue_rows(self) -> dict[str, slice]:
        """The rows of each example in the table of residues, where those of a file follow each other."""
        files = self._residue_table["file"]
        first = np.flatnonzero(np.r_[True, files[1:] != files[:-1]])
        ends = [*first[1:].tolist(), len(files)]
        rows = {str(files[a]): slice(a, b) for a, b in zip(first.tolist(), ends, strict=True)}
        return {name: rows[e.path.name] for name, e in self._examples.items() if e.path.name in rows}

    @cached_property
    def _protein_table(self) -> dict[str, np.ndarray]:
        return _read_columns(self.folder / PROTEIN_LABELS)

    @cached_property
    def _protein_rows(self) -> dict[str, slice]:
        files = self._protein_table["file"].tolist()
        return {Path(file).stem: slice(row, row + 1) for row, file in enumerate(files)}


def _read_columns(path: Path) -> dict[str, np.ndarray]:
    table = pq.read_table(path)
    texts = ("file", "chain", "ins_code", "split")
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return {name: values.astype(str) if name in texts else values for name, values in columns.items()}


def _values(column: np.ndarray, target: Target) -> np.ndarray:
    """Return labels as :class:`~protgraph.data.datasets.target.Target` has them."""
    if target.kind == "classification":
        return np.where(np.isnan(column), -1, column).astype(np.int64)
    return column.astype(np.float32)
