"""Index of a folder and its label table: examples and the table rows of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.label_table import LabelTable, parse_residue_numbers
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder, source_ids
from protgraph.errors import LabelError
from protgraph.structure.residues.identity import residue_ids

__all__ = ["FolderIndex", "index_folder", "index_table", "label_columns"]

_IDENTITY = ("file", "id", "chain", "res_id", "ins_code")
_KEYS = (*_IDENTITY, "split", "cluster")


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """Examples of a folder, before they are assigned to splits.

    Parameters
    ----------
    examples : tuple of Example
    rows : tuple of ndarray
        ``(R,)`` int64 for each example: its rows in the table.
    table : mapping of str to ndarray
        Columns of the label table; empty if there is none.
    keys : tuple of ndarray
        Chain, number and insertion code of each row if labels are per residue; else empty.
    """

    examples: tuple[Example, ...]
    rows: tuple[np.ndarray, ...]
    table: LabelTable = field(default_factory=dict)
    keys: tuple[np.ndarray, ...] = ()

    @property
    def is_per_residue(self) -> bool:
        """True if the labels are per residue."""
        return bool(self.keys)


def label_columns(table: LabelTable) -> list[str]:
    """Return the columns that are labels."""
    return [column for column in table if column not in _KEYS]


def index_folder(folder: ProteinFolder) -> FolderIndex:
    """Index all structure files and FASTA records of a folder.

    Raises
    ------
    DatasetError
        If there are none.
    """
    sources = folder.proteins()
    rows, examples = _examples(sources, list(range(len(sources))), [""] * len(sources))
    return FolderIndex(examples, rows)


def index_table(folder: ProteinFolder, table: LabelTable, where: str) -> FolderIndex:
    """Index the files, records and chains that a table lists.

    Raises
    ------
    LabelError
        If key columns are missing, a file does not exist, or a protein or residue is listed twice.
    """
    key = [c for c in ("file", "id") if c in table]
    if len(key) != 1:
        raise LabelError(f"{where}: needs one column 'file' or 'id', not both. Columns: {', '.join(table)}.")
    per_residue = "res_id" in table
    if per_residue and "chain" not in table:
        raise LabelError(f"{where}: labels per residue need the column 'chain' in addition to 'res_id'")
    sources, file = folder.named(table[key[0]].tolist(), where)
    keys = (table["chain"], *parse_residue_numbers(table, where)) if per_residue else ()
    chain = table["chain"].tolist() if "chain" in table and not per_residue else [""] * len(file)
    _no_duplicates(_row_names([sources[f].name for f in file], chain, keys), table, where)
    rows, examples = _examples(sources, file, chain)
    return FolderIndex(examples, rows, table, keys)


def _row_names(files: list[str], chains: list[str], keys: tuple[np.ndarray, ...]) -> list[str]:
    """Return a readable name per row: ``1ubq.pdb``, ``1ubq.pdb chain A``, ``1ubq.pdb A:42``."""
    if not keys:
        return [f"{file} chain {chain}" if chain else file for file, chain in zip(files, chains, strict=True)]
    return [f"{file} {residue}" for file, residue in zip(files, residue_ids(*keys), strict=True)]


def _no_duplicates(names: list[str], table: LabelTable, where: str) -> None:
    values = [column for name, column in table.items() if name not in _IDENTITY]
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        first = seen.setdefault(name, row)
        if first != row:
            same = all(column[first] == column[row] for column in values)
            how = "with the same" if same else "with different"
            raise LabelError(f"{where}: rows {first + 1} and {row + 1} are both for {name}, {how} values. Keep one.")


def _examples(
    sources: list[ProteinFile], file: list[int], chain: list[str]
) -> tuple[tuple[np.ndarray, ...], tuple[Example, ...]]:
    """Return the rows of each file and chain, in order of appearance, and its example."""
    ids = source_ids(sources)
    rows: dict[tuple[int, str], list[int]] = {}
    for row, key in enumerate(zip(file, chain, strict=True)):
        rows.setdefault(key, []).append(row)
    examples = (
        Example(f"{ids[f]}_{c}" if c else ids[f], path, (c,) if c else None, "", record)
        for f, c in rows
        for path, record in [sources[f].location]
    )
    return tuple(np.array(r) for r in rows.values()), tuple(examples)
