"""Index of a folder and its label table: the examples, the table rows of each, and the contents of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from protgraph.data.datasets.dataset import Example, read_example
from protgraph.data.datasets.fingerprint import Fingerprint
from protgraph.data.datasets.label_table import LabelTable, parse_residue_numbers
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder, source_ids
from protgraph.errors import LabelError, ProtgraphError, list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.identity import residue_ids
from protgraph.wording import count_noun

__all__ = ["FolderIndex", "index_folder"]

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """Examples of a folder, before they are assigned to splits."""

    proteins: ProteinFolder
    table: LabelTable | None  # with T rows
    examples: tuple[Example, ...]
    rows: Mapping[str, np.ndarray]  # example id → ``(R,)`` int64, its rows in the table
    contents: Mapping[str, Fingerprint]  # example id → the chains or the record of its file
    # chain, number and insertion code of each row of the table, ``(T,)`` each, if labels are per residue; else empty
    keys: tuple[np.ndarray, ...] = ()
    notes: tuple[str, ...] = ()  # messages for the user: names in another case, omitted chains

    @property
    def is_per_residue(self) -> bool:
        """True if the labels are per residue."""
        return bool(self.keys)

    @property
    def level(self) -> Literal["node", "graph"]:
        """Level of the labels of the table: "node" for residues, "graph" for proteins."""
        return "node" if self.keys else "graph"

    def is_readable(self, example: Example) -> bool:
        """Return False if no protein can be read from the file of an example."""
        return bool(self.contents[example.id].sequences)

    def lengths_of_rows(self) -> list[list[int]]:
        """Return the numbers of residues of the chains of each row's protein; empty if it cannot be read."""
        lengths: list[list[int]] = [[] for _ in range(sum(map(len, self.rows.values())))]
        for name, rows in self.rows.items():
            for row in rows.tolist():
                lengths[row] = list(self.contents[name].lengths.values())
        return lengths

    def __str__(self) -> str:
        """Return e.g. "7 proteins of structures, 320 rows of labels.csv, one per residue"."""
        text = f"{count_noun(len(self.examples), 'protein')} of {self.proteins.described}"
        if self.table is None:
            return text
        level = "residue" if self.is_per_residue else "protein"
        return f"{text}, {count_noun(len(self.table), 'row')} of {self.table.where}, one per {level}"


def index_folder(folder: ProteinFolder, table: LabelTable | None) -> FolderIndex:
    """Index the files, records and chains that a table lists; without a table, all files and FASTA records."""
    if table is None:
        sources = [protein for group in folder.groups().values() for protein in group]
        return _index(folder, None, sources, list(range(len(sources))), [""] * len(sources), (), ())
    match = folder.match(table)
    if match.error is not None:
        raise match.error
    sources, file = match.proteins, match.of_row
    chain = table.key("chain")
    keys: tuple[np.ndarray, ...] = ()
    if table.is_per_residue:
        keys = (_chains(folder, sources, file, chain, table), *parse_residue_numbers(table))
        chain = np.full(len(table), "")
    _check_case_of_chains(folder, sources, file, table)
    _no_duplicates(sources, file, chain.tolist(), keys, table)
    notes = _notes(sources, file, table)
    return _index(folder, table, sources, file, chain.tolist(), keys, notes)


def _index(
    folder: ProteinFolder,
    table: LabelTable | None,
    sources: Sequence[ProteinFile],
    file: Sequence[int],
    chain: Sequence[str],
    keys: tuple[np.ndarray, ...],
    notes: tuple[str, ...],
) -> FolderIndex:
    """Return the index with an example for each file and chain, in order of appearance."""
    ids = source_ids(sources)
    rows_of: dict[tuple[int, str], list[int]] = {}
    for row, key in enumerate(zip(file, chain, strict=True)):
        rows_of.setdefault(key, []).append(row)
    examples = []
    rows = {}
    contents = {}
    for (number, name), numbers in rows_of.items():
        path, record = sources[number].location
        chains = (name,) if name else None
        example_id = f"{ids[number]}_{name}" if name else ids[number]
        example = Example(example_id, path, chains, "", record)
        examples.append(example)
        rows[example_id] = np.array(numbers)
        content = folder.fingerprint(path, record)
        is_sequence_file = content.records is not None
        contents[example_id] = content.of((record or "",) if is_sequence_file else chains)
    return FolderIndex(folder, table, tuple(examples), rows, contents, keys, notes)


def _notes(sources: Sequence[ProteinFile], file: Sequence[int], table: LabelTable) -> tuple[str, ...]:
    """Return messages about names in another case and omitted chains."""
    notes = []
    other_case = {}
    for name, number in zip(table.keys["file"].tolist(), file, strict=True):
        source = sources[number]
        exact = {source.stem, source.name, *source.file_names()}
        if name not in exact and name.lower() in {text.lower() for text in exact}:
            other_case[name] = source.name
    if other_case:
        name = next(iter(other_case))
        more = f", and {count_noun(len(other_case) - 1, 'other name')} likewise" if len(other_case) > 1 else ""
        notes.append(f"names differ in case: {name!r} is {other_case[name]}{more}")
    blank = int((table.key("chain") == "").sum())
    if table.is_per_residue and blank:
        notes.append(f"{count_noun(blank, 'row')} without a chain: each is of the only protein chain of its file")
    return tuple(notes)


def _chains(
    folder: ProteinFolder, sources: Sequence[ProteinFile], file: Sequence[int], stated: np.ndarray, table: LabelTable
) -> np.ndarray:
    """Return the chain of each row; where the table has none, the only protein chain of the file.

    Files that cannot be read keep a blank chain; they are failures when they are read.
    """
    chain = stated.astype(object)
    for row in np.flatnonzero(stated == "").tolist():
        names = folder.chains(sources[file[row]])
        if len(names) > 1 and "" not in names:
            raise LabelError(
                f"{table.where}: row {table.rows[row]} has no chain, and {sources[file[row]].name} has {len(names)} "
                f"protein chains: {list_first(names, _SHOWN)}. Add a column 'chain'."
            )
        chain[row] = names[0] if len(names) == 1 else ""
    return chain.astype(str)


def _check_case_of_chains(
    folder: ProteinFolder, sources: Sequence[ProteinFile], file: Sequence[int], table: LabelTable
) -> None:
    """Raise if a structure has a chain of this name in another case only."""
    first_row: dict[tuple[int, str], int] = {}
    for row, key in enumerate(zip(file, table.key("chain").tolist(), strict=True)):
        first_row.setdefault(key, row)
    for (number, name), row in first_row.items():
        source = sources[number]
        names = folder.chains(source) if name and source.record is None else []
        if name not in names and name.lower() in {text.lower() for text in names}:
            raise LabelError(
                f"{table.where}: row {table.rows[row]}: no chain {name!r} in {source.name}; "
                f"chains: {list_first(names, _SHOWN)}. Write chains in the case of the file."
            )


def _no_duplicates(
    sources: Sequence[ProteinFile],
    file: Sequence[int],
    chain: Sequence[str],
    keys: tuple[np.ndarray, ...],
    table: LabelTable,
) -> None:
    """Raise if two rows are for the same protein or residue."""
    ids: Sequence[str] = residue_ids(*keys) if keys else [f"chain {name}" if name else "" for name in chain]
    first_row: dict[tuple[int, str], int] = {}
    for row, key in enumerate(zip(file, ids, strict=True)):
        first = first_row.setdefault(key, row)
        if first != row:
            protein = sources[file[row]]
            name = f"{protein.name} {key[1]}".rstrip()
            rows = f"rows {table.rows[first]} and {table.rows[row]}"
            values = "the same values" if _has_same_values(table, first, row) else "different values"
            fix = _how_to_separate(protein, keys, row, table)
            raise LabelError(f"{table.where}: {rows} are both for {name}, with {values}. {fix}")


def _has_same_values(table: LabelTable, first: int, second: int) -> bool:
    """Return True if two rows have the same labels, split and cluster."""
    columns = [*table.labels.values(), table.key("split"), table.key("cluster")]
    return all(column[first] == column[second] for column in columns)


def _how_to_separate(protein: ProteinFile, keys: tuple[np.ndarray, ...], row: int, table: LabelTable) -> str:
    """Return how to correct a table with two rows for one protein or residue."""
    if not keys:
        return "Keep one. For labels per residue, name the residue numbers 'res_id'."
    codes = [] if "ins_code" in table.keys else _insertion_codes(protein, keys, row)
    if len(codes) < 2:
        return "Keep one."
    residues = ", ".join(f"{keys[1][row]}{code}" for code in codes)
    return f"The file has the residues {residues}: add a column 'ins_code'."


def _insertion_codes(protein: ProteinFile, keys: tuple[np.ndarray, ...], row: int) -> list[str]:
    """Return the insertion codes of the residues of a chain and number in a file."""
    path, record = protein.location
    try:
        residues = read_example(Example("", path, None, "", record), ReadOptions())
    except (ProtgraphError, OSError, ValueError):
        return []
    has_number = (residues.chain == keys[0][row]) & (residues.res_id == keys[1][row])
    return [str(code) for code in residues.ins_code[has_number]]
