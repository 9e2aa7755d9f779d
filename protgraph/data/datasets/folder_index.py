"""Index of a folder and its label table: the examples, the table rows of each, and the contents of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.data.datasets.dataset import Example, read_example
from protgraph.data.datasets.fingerprint import Fingerprint
from protgraph.data.datasets.label_table import LabelTable, parse_residue_numbers
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder, source_ids
from protgraph.errors import LabelError, ProtgraphError, list_first
from protgraph.structure.io.read_options import ReadOptions
from protgraph.wording import count_noun

__all__ = ["FolderIndex", "check_no_label_strings", "index_folder"]

_SHOWN = 8

# Cells with one label per residue
_SEPARATORS = re.compile(r"[\s,;|]+")
_QUOTES = "[](){}'\" "
_PLAIN_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?")
_FEWEST = 4  # residues of a protein whose cell is compared
_SHARE = 0.8  # of the compared cells
_TOLERANCE = 0.3  # unresolved residues of a longer cell, relative to the residues of the structure
_LONG = 20  # characters from which a length that is not exact is compared
_SHOWN_CHARACTERS = 20


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """Examples of a folder, before they are assigned to splits."""

    proteins: ProteinFolder
    examples: tuple[Example, ...]
    rows: Mapping[str, np.ndarray]  # example id → ``(R,)`` int64, its rows in the table
    contents: Mapping[str, Fingerprint]  # example id → the chains or the record of its file
    # chain, number and insertion code of each of the T rows of the table, ``(T,)`` each; empty for labels per protein
    keys: tuple[np.ndarray, ...] = ()
    notes: tuple[str, ...] = ()  # messages for the user: names in another case, omitted chains

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
        """Return e.g. "7 proteins of structures, with labels per residue"."""
        text = f"{count_noun(len(self.examples), 'protein')} of {self.proteins.described}"
        return f"{text}, with labels per residue" if self.keys else text


def index_folder(folder: ProteinFolder, table: LabelTable | None) -> FolderIndex:
    """Index the files, records and chains that a table lists; without a table, all files and FASTA records."""
    if table is None:
        sources = [protein for group in folder.groups().values() for protein in group]
        return _index(folder, sources, list(range(len(sources))), [""] * len(sources), (), ())
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
    return _index(folder, sources, file, chain.tolist(), keys, notes)


def _index(
    folder: ProteinFolder,
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
    return FolderIndex(folder, tuple(examples), rows, contents, keys, notes)


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
    columns = [key.tolist() for key in keys] or [chain]
    first_row: dict[tuple[object, ...], int] = {}
    for row, key in enumerate(zip(file, *columns, strict=True)):
        first = first_row.setdefault(key, row)
        if first != row:
            protein = sources[file[row]]
            if keys:
                name = "{} {}:{}{}".format(protein.name, *key[1:])
            else:
                name = f"{protein.name} chain {chain[row]}" if chain[row] else protein.name
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


def check_no_label_strings(index: FolderIndex, table: LabelTable, name: str) -> None:
    """Raise if the cells of a label column per protein have one label for each residue."""
    compared = []
    lengths = index.lengths_of_rows()
    for row, text, chains in zip(table.rows.tolist(), table.labels[name].tolist(), lengths, strict=True):
        if sum(chains) >= _FEWEST and len(text) >= _FEWEST:
            compared.append((row, text, {sum(chains), *chains}))
    if not compared or all(_is_number(text) for _, text, _ in compared):
        return
    fits = []
    for row, text, numbers in compared:
        fits += [(row, text, number) for number in sorted(numbers) if _has_label_per_residue(text, number)][:1]
    if len(fits) < _SHARE * len(compared):
        return
    row, text, number = fits[0]
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    labels = min(_lengths(text), key=lambda length: abs(length - number))
    raise LabelError(
        f"{table.where}: column {name!r}: row {row} is {shown!r}, {labels} labels for {number} residues. Most cells "
        f"({len(fits)} of {len(compared)}) have one label per residue. Write one row for each residue: columns file, "
        f"chain, res_id and {name}. docs/user_data.md has a script for it."
    )


def _is_number(text: str) -> bool:
    """Return True for a plain number, but not for digits that are all 0 and 1."""
    return _PLAIN_NUMBER.fullmatch(text) is not None and not set(text) <= {"0", "1"}


def _lengths(text: str) -> tuple[int, int]:
    """Return the number of characters without separators, and the number of parts between separators."""
    parts = [part.strip(_QUOTES) for part in _SEPARATORS.split(text.strip(_QUOTES))]
    return len("".join(parts)), len(parts)


def _has_label_per_residue(text: str, residues: int) -> bool:
    """Return True if a cell has a label for each residue, or for some more that are not in the structure."""
    characters, words = _lengths(text)
    if residues in (characters, words):
        return True
    longest = (1 + _TOLERANCE) * residues
    is_string = characters == len(text) and characters >= _LONG
    return (is_string and residues < characters <= longest) or (words >= _LONG and residues < words <= longest)
