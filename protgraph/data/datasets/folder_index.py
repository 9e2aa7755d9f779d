"""Index of a folder and its label table: examples and the table rows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.dataset import Example, read_example
from protgraph.data.datasets.label_table import LabelTable, parse_residue_numbers
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder, source_ids
from protgraph.errors import LabelError, ProtgraphError, list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.identity import residue_ids
from protgraph.wording import count_noun

__all__ = ["FolderIndex", "index_folder", "index_table"]

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """Examples of a folder, before they are assigned to splits.

    Parameters
    ----------
    examples : tuple of Example
    rows : tuple of ndarray
        ``(R,)`` int64 for each example: its rows in the table.
    table : LabelTable, optional
        With T rows.
    keys : tuple of ndarray
        Chain, number and insertion code of each row of the table, ``(T,)`` each, if labels are per residue; else empty.
    notes : tuple of str
        Messages for the user: names in another case, omitted chains.
    """

    examples: tuple[Example, ...]
    rows: tuple[np.ndarray, ...]
    table: LabelTable | None = None
    keys: tuple[np.ndarray, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_per_residue(self) -> bool:
        """True if the labels are per residue."""
        return bool(self.keys)


def index_folder(folder: ProteinFolder) -> FolderIndex:
    """Index all structure files and FASTA records of a folder."""
    sources = [protein for group in folder.groups().values() for protein in group]
    rows, examples = _examples(sources, list(range(len(sources))), [""] * len(sources))
    return FolderIndex(examples, rows)


def index_table(folder: ProteinFolder, table: LabelTable) -> FolderIndex:
    """Index the files, records and chains that a table lists."""
    sources, file = folder.named(table)
    if table.is_per_residue:
        given = table.keys.get("chain", np.full(len(table), ""))
        keys = (_chains(folder, sources, file, given, table), *parse_residue_numbers(table))
        chain = [""] * len(file)
    else:
        keys, chain = (), table.keys.get("chain", np.full(len(table), "")).tolist()
    _check_case_of_chains(folder, sources, file, table)
    _no_duplicates(sources, file, chain, keys, table)
    rows, examples = _examples(sources, file, chain)
    return FolderIndex(examples, rows, table, keys, _notes(sources, file, table))


def _notes(sources: list[ProteinFile], file: list[int], table: LabelTable) -> tuple[str, ...]:
    """Return messages about names in another case and omitted chains."""
    notes = []
    other = {}
    for name, f in zip(table.keys["file"].tolist(), file, strict=True):
        own = {sources[f].stem, sources[f].name, *sources[f].file_names()}
        if name not in own and name.lower() in {text.lower() for text in own}:
            other[name] = sources[f].name
    if other:
        name = next(iter(other))
        more = f", and {count_noun(len(other) - 1, 'other name')} likewise" if len(other) > 1 else ""
        notes.append(f"names differ in case: {name!r} is {other[name]}{more}")
    if table.is_per_residue and (blank := int((table.keys.get("chain", np.full(len(table), "")) == "").sum())):
        notes.append(f"{count_noun(blank, 'row')} without a chain: each is of the only protein chain of its file")
    return tuple(notes)


def _chains(
    folder: ProteinFolder, sources: list[ProteinFile], file: list[int], given: np.ndarray, table: LabelTable
) -> np.ndarray:
    """Return the chain of each row; where the table has none, the only protein chain of the file.

    Files that cannot be read keep a blank chain; they are failures when they are read.
    """
    chain = given.astype(object)
    for row in np.flatnonzero(given == ""):
        names = folder.chains(sources[file[row]])
        if len(names) > 1 and "" not in names:
            raise LabelError(
                f"{table.where}: row {table.rows[row]} has no chain, and {sources[file[row]].name} has {len(names)} "
                f"protein chains: {list_first(names, _SHOWN)}. Add a column 'chain'."
            )
        chain[row] = names[0] if len(names) == 1 else ""
    return chain.astype(str)


def _check_case_of_chains(
    folder: ProteinFolder, sources: list[ProteinFile], file: list[int], table: LabelTable
) -> None:
    """Raise if a structure has a chain of this name in another case only."""
    given = table.keys.get("chain", np.full(len(table), "")).tolist()
    first: dict[tuple[int, str], int] = {}
    for row, key in enumerate(zip(file, given, strict=True)):
        first.setdefault(key, row)
    for (f, name), row in first.items():
        names = folder.chains(sources[f]) if name and sources[f].record is None else []
        if name not in names and name.lower() in {text.lower() for text in names}:
            raise LabelError(
                f"{table.where}: row {table.rows[row]}: no chain {name!r} in {sources[f].name}; "
                f"chains: {list_first(names, _SHOWN)}. Write chains in the case of the file."
            )


def _no_duplicates(
    sources: list[ProteinFile], file: list[int], chain: list[str], keys: tuple[np.ndarray, ...], table: LabelTable
) -> None:
    """Raise if two rows are for the same protein or residue."""
    ids: Sequence[str] = residue_ids(*keys) if keys else [f"chain {name}" if name else "" for name in chain]
    seen: dict[tuple[int, str], int] = {}
    for row, key in enumerate(zip(file, ids, strict=True)):
        first = seen.setdefault(key, row)
        if first == row:
            continue
        values = [*table.labels.values(), *(table.keys[key] for key in ("split", "cluster") if key in table.keys)]
        how = "the same" if all(column[first] == column[row] for column in values) else "different"
        protein, name = sources[file[row]], f"{sources[file[row]].name} {key[1]}".rstrip()
        codes = _insertion_codes(protein, keys, row) if keys and "ins_code" not in table.keys else []
        fix = "Keep one." if keys else "Keep one. For labels per residue, name the residue numbers 'res_id'."
        if len(codes) > 1:
            residues = ", ".join(f"{keys[1][row]}{code}" for code in codes)
            fix = f"The file has the residues {residues}: add a column 'ins_code'."
        rows = f"rows {table.rows[first]} and {table.rows[row]}"
        raise LabelError(f"{table.where}: {rows} are both for {name}, with {how} values. {fix}")


def _insertion_codes(protein: ProteinFile, keys: tuple[np.ndarray, ...], row: int) -> list[str]:
    """Return the insertion codes of the residues of a chain and number in a file."""
    path, record = protein.location
    try:
        residues = read_example(Example("", path, None, "", record), ReadOptions())
    except (ProtgraphError, OSError, ValueError):
        return []
    same = (residues.chain == keys[0][row]) & (residues.res_id == keys[1][row])
    return [str(code) for code in residues.ins_code[same]]


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
