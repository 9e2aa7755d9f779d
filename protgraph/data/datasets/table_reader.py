"""Cells of a label table as text: CSV, TSV, .xlsx, Parquet, and data frames of pandas, polars or pyarrow.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protgraph.errors import LabelError, MissingExtraError, suggest

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TableCells", "read_cells"]

_ZIP, _OLE, _PARQUET = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1"
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon"}
_STATED = re.compile(r'"?sep=([\t,;])"?[ \t,;]*(?:\r?\n|$)')  # first line of a CSV file for Excel
_EXACT_INTEGERS = 2.0**53


@dataclass(frozen=True)
class TableCells:
    """Header and rows of a table as text.

    Parameters
    ----------
    where : str
        Name of the table in messages.
    rows : list of (int, list of str)
        Number of each row as in the file, and its cells; the header first. Blank rows are left out. Rows of files count
        from 1, the header; rows of Parquet files and data frames count from 0, as in ``iloc``, and the header is −1.
    digest : str
        SHA-256 of the file, or of the cells of a data frame.
    format : str
        Format for messages, e.g. "columns separated by semicolons".
    has_decimal_comma : bool
        True if the separator is a semicolon: spreadsheets write it where numbers have a decimal comma.
    """

    where: str
    rows: list[tuple[int, list[str]]]
    digest: str
    format: str
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


def _text_rows(content: bytes, path: str) -> tuple[str, list[tuple[int, list[str]]]]:
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


def _numbered(rows: Iterable[Sequence[str]], *, start: int) -> list[tuple[int, list[str]]]:
    """Return the rows with their numbers and stripped cells, without blank rows."""
    stripped = ((number, [cell.strip() for cell in row]) for number, row in enumerate(rows, start))
    return [(number, row) for number, row in stripped if any(row)]


def _workbook_rows(content: bytes, path: str, sheet: str) -> list[tuple[int, list[str]]]:
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
    names = [s.title for s in book.worksheets]
    filled = [s.title for s in book.worksheets if any(cell.value is not None for row in s.iter_rows() for cell in row)]
    if sheet and sheet not in names:
        raise LabelError(f"{path}: no sheet {sheet!r}.{suggest(sheet, names)} Sheets: {', '.join(names)}.")
    if not sheet and len(filled) > 1:
        raise LabelError(f"{path} has {len(filled)} sheets: {', '.join(filled)}. Choose one: {path}#{filled[0]}.")
    name = sheet or (filled or names)[0]
    return _numbered(_sheet_cells(book[name], formulas[name], path), start=1)


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


def _parquet_rows(content: bytes, path: str) -> list[tuple[int, list[str]]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    except (pyarrow.ArrowException, OSError) as e:
        raise LabelError(f"{path} is not a readable Parquet file: {e}") from e
    return _arrow_rows(table)


def _arrow_rows(table: pyarrow.Table) -> list[tuple[int, list[str]]]:
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


def _frame_rows(names: Sequence[str], columns: Sequence[Sequence[object]]) -> list[tuple[int, list[str]]]:
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
