"""Label tables of users: key columns, label columns, and the number of each row as in the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from protgraph.data.datasets.table_reader import TableCells, read_cells
from protgraph.errors import LabelError, UnknownNameError, list_first, suggest

__all__ = ["KEY_ALIASES", "LabelTable", "label_names", "parse_residue_numbers", "read_label_table"]

KEY_ALIASES = MappingProxyType(
    {
        "file": ("file", "id", "pdb", "pdb_id", "pdb_code", "file_name", "path", "file_path", "entry", "entry_id"),
        "chain": ("chain", "chain_id", "chain_name", "auth_asym_id", "auth_chain_id", "pdb_chain"),
        "res_id": (
            *("res_id", "residue_id", "res_num", "res_number", "residue_num", "residue_number", "res_no"),
            *("res_seq", "auth_seq_id", "pdb_res_num"),
        ),
        "ins_code": ("ins_code", "icode", "insertion_code", "insertion", "pdbx_pdb_ins_code"),
        "split": ("split",),
        "cluster": ("cluster", "cluster_id"),
    }
)
"""Key column → the names that it may have, in any case, with or without spaces and underscores."""

#: Identifiers of mmCIF that count residues and name chains differently from the author identifiers.
_OTHER_NUMBERING = {"labelseqid": "auth_seq_id", "labelasymid": "auth_asym_id"}
_RESIDUE = re.compile(r"([+-]?\d+)(?:\.0+)?\s*([A-Za-z]?)")
_NO_CODE = (".", "?", "nan", "NaN")  # mmCIF writes . or ? for a residue without insertion code
#: Texts of an unresolved residue's number.
_NO_NUMBER = ("", "NA", "N/A", "nan", "NaN", "<NA>", "null", "NULL", "None", "-", "?", ".")
_LISTED = 8


def _plain(name: str) -> str:
    return re.sub(r"[\s_.\-]", "", name).lower()


_KEY_OF = {_plain(alias): key for key, aliases in KEY_ALIASES.items() for alias in aliases}


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Columns of a label table as text; blank cells are "".

    Parameters
    ----------
    where : str
        Name of the table in messages.
    keys : mapping of str to ndarray
        ``(R,)`` str of each key column that the table has: file, chain, res_id, ins_code, split, cluster.
    labels : mapping of str to ndarray
        ``(R,)`` str of each other column.
    rows : ndarray
        ``(R,)`` int, number of each row as in the file, where the header is row 1.
    digest : str
        SHA-256 of the content.
    format : str
        Format for messages, e.g. "columns separated by semicolons".
    prefers_comma : bool
        True if numbers may have a decimal comma: in tables separated by semicolons.
    notes : tuple of str
        Messages for the user: aliases of key columns, ignored columns.
    empty : tuple of str
        Columns that are blank in every row, which are ignored.
    """

    where: str
    keys: Mapping[str, np.ndarray]
    labels: Mapping[str, np.ndarray]
    rows: np.ndarray
    digest: str
    format: str
    prefers_comma: bool = False
    notes: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_per_residue(self) -> bool:
        """True if the labels are per residue."""
        return "res_id" in self.keys

    @property
    def has_labels(self) -> bool:
        """True if the table has a label column, even if it is blank."""
        return bool(self.labels or self.empty)

    def key(self, name: str) -> np.ndarray:
        """Return ``(R,)`` str, a key column; blank if the table does not have it."""
        return self.keys.get(name, np.full(len(self), ""))

    def without_files(self, names: Collection[str]) -> LabelTable:
        """Return the table without the rows of these files."""
        return self._rows(~np.isin(self.keys["file"], list(names)))

    def _rows(self, keep: np.ndarray) -> LabelTable:
        """Return the rows for which ``keep (R,)`` is True."""
        keys, labels = ({name: c[keep] for name, c in part.items()} for part in (self.keys, self.labels))
        return replace(self, keys=keys, labels=labels, rows=self.rows[keep])

    def select(self, task: str | None, columns: str | Sequence[str] | None) -> list[str]:
        """Return the label columns of a task.

        Parameters
        ----------
        task : str, optional
            A label column, if ``columns`` is not given.

        Raises
        ------
        UnknownNameError
            The table has no such label column.
        LabelError
            There is no label column, or several and none is selected, or ``task`` is a column beside ``columns``.
        """
        available, where = list(self.labels), self.where
        chosen = [columns] if isinstance(columns, str) else list(columns or ([task] if task is not None else ()))
        for name in chosen:
            if name in self.empty:
                raise LabelError(f"{where}: column {name!r} is blank in every row.")
        if not available:
            blank = f" Blank in every row: {', '.join(map(repr, self.empty))}." if self.empty else ""
            raise LabelError(f"{where}: no label column. Columns: {', '.join(self.keys)}.{blank}")
        for name in chosen:
            if name not in available:
                hint = suggest(name, available)
                have = list_first(available, _LISTED)
                raise UnknownNameError(f"{where}: no label column {name!r}.{hint} Label columns: {have}.")
        if len(chosen) != len(set(chosen)) or (task in available and chosen != [task]):
            named = ", ".join(chosen)
            raise LabelError(f"{where}: task {task!r} of the columns {named}. Give each column once, by one name.")
        if not chosen and len(available) > 1:
            raise LabelError(
                f"{where} has {len(available)} label columns: {list_first(available, _LISTED)}. Choose one with --task "
                "(task=), or several numeric ones that form one task with --column for each (columns=)."
            )
        return chosen or available


def label_names(task: str | None, columns: str | Sequence[str] | None) -> list[str]:
    """Return the columns that are labels even if their names are those of keys."""
    names = [columns] if isinstance(columns, str) else list(columns or ())
    return [*names, task] if task else names


def read_label_table(source: Any, *, columns: Collection[str] = ()) -> LabelTable:
    """Read a label table.

    Parameters
    ----------
    source : str, Path, data frame or LabelTable
        See :func:`protgraph.data.datasets.table_reader.read_cells`. A LabelTable is returned as it is.
    columns : collection of str
        Columns that are labels even if their names are aliases of key columns, e.g. "resid".

    Raises
    ------
    LabelError
        The table cannot be read, a column name is missing or repeated, a row has a wrong number of columns, or two
        columns are for the same key.

    Examples
    --------
    >>> import pandas
    >>> table = read_label_table(pandas.DataFrame({"pdb": ["1ubq", "1crn"], "tm": [81.5, 60]}))
    >>> table.notes, list(table.labels)
    (("column 'pdb' is the file",), ['tm'])
    """
    if isinstance(source, LabelTable):
        return source
    cells = read_cells(source)
    names, body, notes = _rectangle(cells)
    key_names = find_keys([name for name in names if name], columns, cells.where)
    text = np.array([row for _, row in body], dtype=object).reshape(len(body), len(names))
    by_name = {name: text[:, i].astype(str) for i, name in enumerate(names) if name}
    keys = {key: by_name[name] for key, name in key_names.items()}
    keys = {key: column for key, column in keys.items() if key in ("file", "split") or (column != "").any()}
    labels = {name: column for name, column in by_name.items() if name not in key_names.values()}
    empty = tuple(name for name, column in labels.items() if not (column != "").any())
    if empty:
        noun = "column is" if len(empty) == 1 else "columns are"
        notes.append(f"{len(empty)} {noun} blank in every row and ignored: {list_first(empty, _LISTED)}")
    aliases = [f"column {name!r} is the {key}" for key, name in key_names.items() if name.lower() not in (key, "id")]
    table = LabelTable(
        where=cells.where,
        keys=keys,
        labels={name: column for name, column in labels.items() if name not in empty},
        rows=np.array([number for number, _ in body]),
        digest=cells.digest,
        format=cells.format,
        prefers_comma=cells.has_decimal_comma,
        notes=(*aliases, *notes),
        empty=empty,
    )
    return _without_unnumbered_rows(table)


def find_keys(names: Sequence[str], labels: Collection[str], where: str) -> dict[str, str]:
    """Return the name of each key column that a header has.

    Examples
    --------
    >>> find_keys(["PDB", "Chain ID", "resnum", "site"], (), "labels.csv")
    {'file': 'PDB', 'chain': 'Chain ID', 'res_id': 'resnum'}
    """
    found: dict[str, str] = {}
    for name in names:
        key = _KEY_OF.get(_plain(name))
        if key is None or (name in labels and name not in KEY_ALIASES):
            continue
        if key in found:
            raise LabelError(
                f"{where}: columns {found[key]!r} and {name!r} are both for {key!r}. "
                "Remove or rename one, or use it as a label with --column (columns=)."
            )
        found[key] = name
    if "file" not in found:
        raise LabelError(f"{where}: no column 'file' (or 'id', 'pdb', 'path'). Columns: {', '.join(names)}.")
    for name in names:
        if (author := _OTHER_NUMBERING.get(_plain(name))) and name not in labels:
            raise LabelError(
                f"{where}: column {name!r} has another numbering than the author identifiers of residues. "
                f"Use {author!r} instead, and remove {name!r}."
            )
    return found


def _without_unnumbered_rows(table: LabelTable) -> LabelTable:
    """Return a table per residue without the rows that have no residue number, e.g. of unresolved residues."""
    has_number = ~np.isin(table.keys.get("res_id", np.full(len(table), "1")), _NO_NUMBER)
    if has_number.all() or not has_number.any():
        return table
    count = int((~has_number).sum())
    noun = "row has" if count == 1 else "rows have"
    first = list_first([str(row) for row in table.rows[~has_number].tolist()], _LISTED)
    note = f"{count} {noun} no residue number, e.g. for unresolved residues, and left out: row {first}"
    return replace(table._rows(has_number), notes=(*table.notes, note))


def _rectangle(cells: TableCells) -> tuple[list[str], list[tuple[int, list[str]]], list[str]]:
    """Return the column names, the rows at equal length, and notes; blank columns without a name are left out."""
    where, names = cells.where, list(cells.rows[0][1])
    width = max(len(row) for _, row in cells.rows)
    given = len(names)
    while names and not names[-1]:
        names.pop()
    rows = []
    for number, row in cells.rows[1:]:
        if len(row) < len(names) or any(row[max(given, len(names)) :]):
            raise LabelError(f"{where}: row {number} has {len(row)} columns, the header has {len(names)}.")
        rows.append((number, [*row, *[""] * (width - len(row))]))
    names += [""] * (width - len(names))
    unnamed = [i for i, name in enumerate(names) if not name]
    for i in unnamed:
        filled = next(((number, row[i]) for number, row in rows if row[i]), None)
        if filled is not None:
            raise LabelError(
                f"{where}: column {i + 1} has no name, but row {filled[0]} has {filled[1]!r}. Name it in the header."
            )
    repeated = [name for i, name in enumerate(names) if name and name in names[:i]]
    if repeated:
        raise LabelError(f"{where}: column {repeated[0]!r} is repeated. Rename or remove one.")
    noun = "column without a name is" if len(unnamed) == 1 else "columns without a name are"
    return names, rows, [f"{len(unnamed)} {noun} blank and ignored"] if unnamed else []


def parse_residue_numbers(table: LabelTable) -> tuple[np.ndarray, np.ndarray]:
    """Parse residue numbers ``(R,)`` int64 and insertion codes ``(R,)`` str; ``res_id`` may have both (``100B``)."""
    numbers, codes = table.keys["res_id"], table.keys.get("ins_code")
    codes = None if codes is None else np.where(np.isin(codes, _NO_CODE), "", codes)
    matches = [_RESIDUE.fullmatch(text) for text in numbers.tolist()]
    for i, match in enumerate(matches):
        if match is None or (match[2] and codes is not None and codes[i] not in ("", match[2])):
            values = f"res_id {str(numbers[i])!r}" + ("" if codes is None else f", ins_code {str(codes[i])!r}")
            raise LabelError(
                f"{table.where}: row {table.rows[i]} has {values}. Allowed: '42', or '100B' with insertion code."
            )
    number = np.array([int(match[1]) for match in matches], dtype=np.int64)
    suffix = np.array([match[2] for match in matches])
    return number, suffix if codes is None else np.where(codes == "", suffix, codes)
