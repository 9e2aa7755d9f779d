"""Which proteins of a folder take part in a dataset, as one table says, and which of its rows are of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.label_table import LabelTable, residue_numbers
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder, source_ids
from protgraph.errors import LabelError

__all__ = ["FolderIndex", "index_folder", "label_columns", "index_table"]

IDENTITY = ("file", "id", "chain", "res_id", "ins_code")
KEYS = (*IDENTITY, "split", "cluster")


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """Proteins to be examples, their splits still open.

    Parameters
    ----------
    examples : tuple of Example
    rows : tuple of ndarray
        ``(R,)`` int64 of each example: its rows in the table.
    table : mapping of str to ndarray
        Empty where there is none.
    keys : tuple of ndarray
        Chain, number and insertion code of each row, where rows are of residues; else empty.
    """

    examples: tuple[Example, ...]
    rows: tuple[np.ndarray, ...]
    table: LabelTable = field(default_factory=dict)
    keys: tuple[np.ndarray, ...] = ()

    @property
    def per_residue(self) -> bool:
        """Whether rows are of residues."""
        return bool(self.keys)


def label_columns(table: LabelTable) -> list[str]:
    """The columns that are labels."""
    return [column for column in table if column not in KEYS]


def index_folder(folder: ProteinFolder) -> FolderIndex:
    """Every structure file and FASTA record of a folder.

    Raises
    ------
    DatasetError
        There is none.
    """
    sources = folder.proteins()
    rows, examples = _examples(sources, list(range(len(sources))), [""] * len(sources))
    return FolderIndex(examples, rows)


def index_table(folder: ProteinFolder, table: LabelTable, where: str) -> FolderIndex:
    """The files, records and chains that a table names.

    Raises
    ------
    LabelError
        It does not say which protein or residue, names absent files, or one protein or residue twice.
    """
    given = [c for c in ("file", "id") if c in table]
    if len(given) != 1:
        raise LabelError(f"{where}: one column 'file' or 'id' says which protein; its columns are {', '.join(table)}")
    per_residue = "res_id" in table
    if per_residue and "chain" not in table:
        raise LabelError(f"{where}: labels per residue need a 'chain' column beside 'res_id'")
    sources, file = folder.named(table[given[0]].tolist(), where)
    keys = (table["chain"], *residue_numbers(table, where)) if per_residue else ()
    chain = table["chain"].tolist() if "chain" in table and not per_residue else [""] * len(file)
    _no_duplicates(_row_names([sources[f].name for f in file], chain, keys), table, where)
    rows, examples = _examples(sources, file, chain)
    return FolderIndex(examples, rows, table, keys)


def _row_names(files: list[str], chains: list[str], keys: tuple[np.ndarray, ...]) -> list[str]:
    """What each row labels, readable: ``1ubq.pdb``, ``1ubq.pdb chain A``, ``1ubq.pdb A:42``."""
    if not keys:
        return [f"{file} chain {chain}" if chain else file for file, chain in zip(files, chains, strict=True)]
    residues = zip(*(key.tolist() for key in keys), strict=True)
    return [f"{file} {c}:{r}{i}" for file, (c, r, i) in zip(files, residues, strict=True)]


def _no_duplicates(names: list[str], table: LabelTable, where: str) -> None:
    told = [column for name, column in table.items() if name not in IDENTITY]
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        first = seen.setdefault(name, row)
        if first != row:
            same = all(column[first] == column[row] for column in told)
            verdict = "say the same" if same else "contradict each other"
            raise LabelError(f"{where}: rows {first + 1} and {row + 1} are both of {name} and {verdict}; keep one")


def _examples(
    sources: list[ProteinFile], file: list[int], chain: list[str]
) -> tuple[tuple[np.ndarray, ...], tuple[Example, ...]]:
    """The rows of each file and chain, in order of appearance, and the example that it is."""
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
