"""Label tables of users: cells of a file or data frame, key columns, label columns, and the number of each row.

Not pandas or pyarrow.csv for text: both accept malformed quotes or short rows silently, and their errors have no row
number (pandas 3.1 fills short rows; pyarrow 26.0 reads an unclosed quote to the end of the file; 2026-11-22).
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from protgraph.errors import LabelError, MissingExtraError, UnknownNameError, list_first, suggest

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "KEY_ALIASES",
    "LabelTable",
    "TableCells",
    "label_names",
    "parse_residue_numbers",
    "read_cells",
    "read_label_table",
]

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
        keys = {name: column[keep] for name, column in self.keys.items()}
        labels = {name: column[keep] for name, column in self.labels.items()}
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
        if isinstance(columns, str):
            chosen = [columns]
        elif columns:
            chosen = list(columns)
        else:
            chosen = [] if task is None else [task]
        self._require_labels(chosen)
        available, where = list(self.labels), self.where
        is_other_task = task in available and chosen != [task]
        if len(chosen) != len(set(chosen)) or is_other_task:
            named = ", ".join(chosen)
            raise LabelError(f"{where}: task {task!r} of the columns {named}. Give each column once, by one name.")
        if not chosen and len(available) > 1:
            raise LabelError(
                f"{where} has {len(available)} label columns: {list_first(available, _LISTED)}. Choose one with --task "
                "(task=), or several numeric ones that form one task with --column for each (columns=)."
            )
        return chosen or available

    def _require_labels(self, names: Sequence[str]) -> None:
        """Require that the table has label columns, and that these are among them and not blank."""
        where = self.where
        for name in names:
            if name in self.empty:
                raise LabelError(f"{where}: column {name!r} is blank in every row.")
        if not self.labels:
            blank = f" Blank in every row: {', '.join(map(repr, self.empty))}." if self.empty else ""
            raise LabelError(f"{where}: no label column. Columns: {', '.join(self.keys)}.{blank}")
        available = list(self.labels)
        for name in names:
            if name not in available:
                hint = suggest(name, available)
                have = list_first(available, _LISTED)
                raise UnknownNameError(f"{where}: no label column {name!r}.{hint} Label columns: {have}.")


def label_names(task: str | None, columns: str | Sequence[str] | None) -> list[str]:
    """Return the columns that are labels even if their names are those of keys."""
    names = [columns] if isinstance(columns, str) else list(columns or ())
    return [*names, task] if task else names


def read_label_table(source: Any, *, columns: Collection[str] = ()) -> LabelTable:
    """Read a label table.

    Parameters
    ----------
    source : str, Path, data frame or LabelTable
        See :func:`protgraph.data.datasets.label_table.read_cells`. A LabelTable is returned as it is.
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
    names, body = _rectangle(cells)
    by_name = _named_columns(names, body)
    name_of_key = find_keys(list(by_name), columns, cells.where)
    key_of_name = {name: key for key, name in name_of_key.items()}
    keys, labels, aliases, empty = {}, {}, [], []
    for name, column in by_name.items():
        is_blank = not (column != "").any()
        if name in key_of_name:
            key = key_of_name[name]
            if key in ("file", "split") or not is_blank:
                keys[key] = column
            if name.lower() not in (key, "id"):
                aliases.append(f"column {name!r} is the {key}")
        elif is_blank:
            empty.append(name)
        else:
            labels[name] = column
    table = LabelTable(
        where=cells.where,
        keys=keys,
        labels=labels,
        rows=np.array([number for number, _ in body]),
        digest=cells.digest,
        format=cells.format,
        prefers_comma=cells.has_decimal_comma,
        notes=(*aliases, *_notes_on_ignored(len(names) - len(by_name), empty)),
        empty=tuple(empty),
    )
    return _without_unnumbered_rows(table)


def _named_columns(names: Sequence[str], rows: _Rows) -> dict[str, np.ndarray]:
    """Return the column ``(R,)`` str of each name."""
    text = np.array([row for _, row in rows], dtype=object).reshape(len(rows), len(names))
    return {name: text[:, i].astype(str) for i, name in enumerate(names) if name}


def _notes_on_ignored(num_unnamed: int, empty: Sequence[str]) -> list[str]:
    """Return notes about blank columns: the number of those without a name, and the names of the others."""
    notes = []
    if num_unnamed:
        noun = "column without a name is" if num_unnamed == 1 else "columns without a name are"
        notes.append(f"{num_unnamed} {noun} blank and ignored")
    if empty:
        noun = "column is" if len(empty) == 1 else "columns are"
        notes.append(f"{len(empty)} {noun} blank in every row and ignored: {list_first(empty, _LISTED)}")
    return notes


def find_keys(names: Sequence[str], labels: Collection[str], where: str) -> dict[str, str]:
    """Return the name of each key column that a header has.

    Examples
    --------
    >>> find_keys(["PDB", "Chain ID", "resnum", "site"], (), "labels.csv")
    {'file': 'PDB', 'chain': 'Chain ID', 'res_id': 'resnum'}
    """
    column_of_key: dict[str, str] = {}
    for name in names:
        key = _KEY_OF.get(_plain(name))
        if key is None or (name in labels and name not in KEY_ALIASES):
            continue
        if key in column_of_key:
            raise LabelError(
                f"{where}: columns {column_of_key[key]!r} and {name!r} are both for {key!r}. "
                "Remove or rename one, or use it as a label with --column (columns=)."
            )
        column_of_key[key] = name
    if "file" not in column_of_key:
        raise LabelError(f"{where}: no column 'file' (or 'id', 'pdb', 'path'). Columns: {', '.join(names)}.")
    for name in names:
        if (author := _OTHER_NUMBERING.get(_plain(name))) and name not in labels:
            raise LabelError(
                f"{where}: column {name!r} has another numbering than the author identifiers of residues. "
                f"Use {author!r} instead, and remove {name!r}."
            )
    return column_of_key


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


def _rectangle(cells: TableCells) -> tuple[list[str], _Rows]:
    """Return the column names and the rows at equal length; a column without a name is blank."""
    where, header = cells.where, list(cells.rows[0][1])
    names = header.copy()
    while names and not names[-1]:
        names.pop()
    for number, row in cells.rows[1:]:
        if len(row) < len(names) or any(row[len(header) :]):
            raise LabelError(f"{where}: row {number} has {len(row)} columns, the header has {len(names)}.")
    width = max(len(row) for _, row in cells.rows)
    names += [""] * (width - len(names))
    rows = [(number, row + [""] * (width - len(row))) for number, row in cells.rows[1:]]
    _check_names(names, rows, where)
    return names, rows


def _check_names(names: Sequence[str], rows: _Rows, where: str) -> None:
    """Require that a column without a name is blank in every row, and that no name is repeated."""
    for i, name in enumerate(names):
        first = None if name else next(((number, row[i]) for number, row in rows if row[i]), None)
        if first is not None:
            raise LabelError(
                f"{where}: column {i + 1} has no name, but row {first[0]} has {first[1]!r}. Name it in the header."
            )
    for i, name in enumerate(names):
        if name and name in names[:i]:
            raise LabelError(f"{where}: column {name!r} is repeated. Rename or remove one.")


def parse_residue_numbers(table: LabelTable) -> tuple[np.ndarray, np.ndarray]:
    """Parse residue numbers ``(R,)`` int64 and insertion codes ``(R,)`` str; ``res_id`` may have both (``100B``)."""
    numbers, codes = table.keys["res_id"], table.keys.get("ins_code")
    codes = None if codes is None else np.where(np.isin(codes, _NO_CODE), "", codes)
    parsed: list[tuple[int, str]] = []
    for i, text in enumerate(numbers.tolist()):
        match = _RESIDUE.fullmatch(text)
        if match is None or (match[2] and codes is not None and codes[i] not in ("", match[2])):
            values = f"res_id {str(numbers[i])!r}" + ("" if codes is None else f", ins_code {str(codes[i])!r}")
            raise LabelError(
                f"{table.where}: row {table.rows[i]} has {values}. Allowed: '42', or '100B' with insertion code."
            )
        parsed.append((int(match[1]), match[2]))
    number = np.array([number for number, _ in parsed], dtype=np.int64)
    suffix = np.array([suffix for _, suffix in parsed])
    return number, suffix if codes is None else np.where(codes == "", suffix, codes)


_ZIP, _OLE, _PARQUET = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1"
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon"}
_STATED = re.compile(r'"?sep=([\t,;])"?[ \t,;]*(?:\r?\n|$)')  # first line of a CSV file for Excel
_EXACT_INTEGERS = 2.0**53


_Rows = list[tuple[int, list[str]]]  # number and cells of each row


@dataclass(frozen=True)
class TableCells:
    """Header and rows of a table as text."""

    where: str  # name of the table in messages
    # number of each row as in the file, and its cells; the header first. Blank rows are left out. Rows of files count
    # from 1, the header; rows of Parquet files and data frames count from 0, as in ``iloc``, and the header is −1
    rows: _Rows
    digest: str  # SHA-256 of the file, or of the cells of a data frame
    format: str  # format for messages, e.g. "columns separated by semicolons"
    # True if the separator is a semicolon: spreadsheets write it where numbers have a decimal comma
    has_decimal_comma: bool = False


def read_cells(source: Any) -> TableCells:
    """Read a table as text. Formats are recognized by content."""
    if not isinstance(source, str | Path):
        return _with_rows(_frame_cells(source))
    path, sheet = _split_sheet(str(source))
    try:
        content = Path(path).read_bytes()
    except OSError as e:
        raise LabelError(f"cannot read label table {path!r}: {e.strerror}") from e
    if content.startswith(_OLE):
        raise LabelError(f"{path} is an .xls workbook. Save it as .xlsx or as CSV UTF-8.")
    digest = hashlib.sha256(content).hexdigest()
    if content.startswith(_ZIP):
        cells = TableCells(str(source), _workbook_rows(content, path, sheet), digest, "Excel workbook")
    elif content.startswith(_PARQUET):
        cells = TableCells(f"{path} (rows from 0)", _parquet_rows(content, path), digest, "Parquet")
    else:
        separator, rows = _text_rows(content, path)
        name = f"columns separated by {_SEPARATORS[separator]}s"
        cells = TableCells(path, rows, digest, name, has_decimal_comma=separator == ";")
    return _with_rows(cells)


def _with_rows(cells: TableCells) -> TableCells:
    if len(cells.rows) < 2:
        raise LabelError(f"{cells.where} has no labels. It needs a header and at least one row.")
    return cells


def _split_sheet(source: str) -> tuple[str, str]:
    path, mark, sheet = source.rpartition("#")
    return (path, sheet) if mark and path.lower().endswith(".xlsx") else (source, "")


def _text_rows(content: bytes, path: str) -> tuple[str, _Rows]:
    """Return the separator and the rows of a text table."""
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
        if "\0" in text:
            raise LabelError(f"{path} is not a text table: it has null characters. Save it as CSV UTF-8.")
        stated = _STATED.match(text)
        header = text.partition("\n")[0]
        separator = stated[1] if stated else next((mark for mark in _SEPARATORS if mark in header), ",")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except UnicodeDecodeError as e:
        row = content[: e.start].count(b"\n") + 1
        raise LabelError(f"{path} is not UTF-8 text (row {row}). Save it as 'CSV UTF-8'.") from e
    except csv.Error as e:
        raise LabelError(f"{path} is not a table with columns separated by commas, tabs or semicolons: {e}") from e
    return separator, _numbered([[], *rows[1:]] if stated else rows, start=1)


def _numbered(rows: Iterable[Sequence[str]], *, start: int) -> _Rows:
    """Return the rows with their numbers and stripped cells, without blank rows."""
    numbered = []
    for number, row in enumerate(rows, start):
        cells = [cell.strip() for cell in row]
        if any(cells):
            numbered.append((number, cells))
    return numbered


def _workbook_rows(content: bytes, path: str, sheet: str) -> _Rows:
    """Return the rows of one sheet; formulas have the values that were stored with them."""
    try:
        import openpyxl
    except ImportError as e:
        raise MissingExtraError(
            f"{path} is an Excel workbook, which requires openpyxl. Install it: pip install 'protgraph-pyg[xlsx]'. "
            "Or save the table as CSV UTF-8."
        ) from e
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        formulas = openpyxl.load_workbook(io.BytesIO(content))
    except Exception as e:  # openpyxl raises many types of error for damaged files
        raise LabelError(f"{path} is not a readable .xlsx workbook ({e}). Save the table as CSV UTF-8.") from e
    name = _choose_sheet(book, path, sheet)
    return _numbered(_sheet_cells(book[name], formulas[name], path), start=1)


def _choose_sheet(book: Any, path: str, sheet: str) -> str:
    """Return the name of the requested sheet, or of the only one that is filled."""
    names, filled = [], []
    for worksheet in book.worksheets:
        names.append(worksheet.title)
        if any(value is not None for row in worksheet.iter_rows(values_only=True) for value in row):
            filled.append(worksheet.title)
    if sheet and sheet not in names:
        raise LabelError(f"{path}: no sheet {sheet!r}.{suggest(sheet, names)} Sheets: {', '.join(names)}.")
    if sheet:
        return sheet
    if len(filled) > 1:
        raise LabelError(f"{path} has {len(filled)} sheets: {', '.join(filled)}. Choose one: {path}#{filled[0]}.")
    return filled[0] if filled else names[0]


def _sheet_cells(sheet: Any, formulas: Any, path: str) -> list[list[str]]:
    rows = []
    for row, sources in zip(sheet.iter_rows(), formulas.iter_rows(), strict=True):
        for cell, source in zip(row, sources, strict=True):
            if source.data_type == "f" and cell.value is None:
                raise LabelError(
                    f"{path}: cell {source.coordinate} has a formula without a stored value. "
                    "Open the workbook in a spreadsheet program and save it."
                )
        values = [cell.value for cell in row]
        rows.append([_value_text(v, as_integer=isinstance(v, float) and v.is_integer()) for v in values])
    return rows


def _parquet_rows(content: bytes, path: str) -> _Rows:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    except (pyarrow.ArrowException, OSError) as e:
        raise LabelError(f"{path} is not a readable Parquet file: {e}") from e
    return _arrow_rows(table)


def _arrow_rows(table: pyarrow.Table) -> _Rows:
    return _frame_rows(table.column_names, [column.to_pylist() for column in table.columns])


def _frame_cells(frame: Any) -> TableCells:
    """Return the cells of a data frame of pandas, polars (``to_arrow``) or pyarrow."""
    if hasattr(frame, "to_arrow"):
        frame = frame.to_arrow()
    if hasattr(frame, "column_names") and hasattr(frame, "columns"):
        rows = _arrow_rows(frame)
    elif hasattr(frame, "reset_index") and hasattr(frame, "columns"):
        frame = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
        names = list(map(str, frame.columns))
        rows = _frame_rows(names, [frame.iloc[:, i].tolist() for i in range(len(names))])
    else:
        raise LabelError(
            f"labels: {type(frame).__name__} is not a label table. Allowed: the path of a CSV, .xlsx or Parquet file, "
            "or a data frame of pandas, polars or pyarrow."
        )
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    return TableCells("the data frame (rows from 0)", rows, digest, "data frame")


def _frame_rows(names: Sequence[str], columns: Sequence[Sequence[object]]) -> _Rows:
    texts = [_column_texts(column) for column in columns]
    return [(-1, [name.strip() for name in names]), *_numbered(zip(*texts, strict=True), start=0)]


def _column_texts(values: Sequence[object]) -> list[str]:
    """Return a column as text. Whole numbers are written as integers: pandas stores these as floats beside NaN."""
    floats = [v for v in values if isinstance(v, float) and math.isfinite(v)]
    as_integer = all(v.is_integer() and abs(v) < _EXACT_INTEGERS for v in floats)
    return [_value_text(value, as_integer=as_integer) for value in values]


def _value_text(value: object, *, as_integer: bool) -> str:
    if value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT")):
        return ""  # NaN, and NA of pandas, which has no truth value
    if isinstance(value, float):
        return str(int(value)) if as_integer and math.isfinite(value) else repr(float(value))
    return str(value).strip()
