"""Label tables of users: text with a header and columns separated by commas, tabs or semicolons.

Spreadsheets write semicolons if the decimal separator is a comma; in such a table ``40,5`` is 40.5.

Not pandas or pyarrow.csv: both accept malformed quotes or short rows silently, and their errors have no row number
(pandas 3.1 fills short rows; pyarrow 26.0 reads an unclosed quote to the end of the file; 2026-11-22).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from protgraph.errors import LabelError

__all__ = ["LabelTable", "parse_labels", "parse_residue_numbers", "read_label_table"]

LabelTable = Mapping[str, np.ndarray]
"""Columns by name, each ``(R,)`` str; blank cells are ""."""

_BLANK = ("", "nan", "NaN")
_UNKNOWN_NUMBER = (*_BLANK, "NA")
_RESIDUE = re.compile(r"\s*([+-]?\d+)\s*([A-Za-z]?)\s*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


def read_label_table(path: str | Path) -> dict[str, np.ndarray]:
    """Read a table as strings. The separator is the first of tab, comma and semicolon that the header contains.

    Raises
    ------
    LabelError
        If the file is missing, empty or not UTF-8, a column name is repeated, or a row has a wrong number of columns.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            separator = next((mark for mark in "\t,;" if mark in header), ",")
            rows = list(csv.reader(file, delimiter=separator, strict=True))
    except OSError as e:
        raise LabelError(f"cannot read label table {str(path)!r}: {e.strerror}") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise LabelError(f"{path} is not UTF-8 text with columns separated by commas, tabs or semicolons: {e}") from e
    lines = [(number, row) for number, row in enumerate(rows, start=1) if any(map(str.strip, row))]
    if len(lines) < 2:
        raise LabelError(f"{path} has no labels. It needs a header and at least one row.")
    names = [name.strip() for name in lines[0][1]]
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise LabelError(f"{path}: column {repeated[0]!r} is repeated")
    for number, row in lines[1:]:
        if len(row) != len(names):
            raise LabelError(f"{path}: row {number} has {len(row)} columns, the header has {len(names)}")
    cells = [row if separator != ";" else [_decimal_point(text) for text in row] for _, row in lines[1:]]
    columns = zip(*cells, strict=True)
    return {name: np.char.strip(np.array(column)) for name, column in zip(names, columns, strict=True)}


def _decimal_point(text: str) -> str:
    """Convert ``40,5`` to ``40.5``; return any other text unchanged."""
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text.strip()) else text


def parse_residue_numbers(table: LabelTable, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse residue numbers ``(R,)`` int64 and insertion codes ``(R,)`` str; ``res_id`` may contain both, as ``100B``.

    Raises
    ------
    LabelError
        If a value is not a residue number, or contradicts the column ``ins_code``.
    """
    matches = [_RESIDUE.fullmatch(text) for text in table["res_id"].tolist()]
    codes = table.get("ins_code")
    for i, match in enumerate(matches):
        if match is None or (match[2] and codes is not None and codes[i] not in ("", match[2])):
            values = f"res_id {str(table['res_id'][i])!r}" + ("" if codes is None else f", ins_code {str(codes[i])!r}")
            raise LabelError(f"{where}: label {i + 1} has {values}. Allowed: '42', or '100B' with insertion code.")
    number = np.array([int(match[1]) for match in matches], dtype=np.int64)
    suffix = np.array([match[2] for match in matches])
    return number, suffix if codes is None else np.where(codes == "", suffix, codes)


def parse_labels(
    table: LabelTable, columns: Sequence[str], kind: str | None, where: str
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Parse label columns. Blank cells and "nan" are unknown; in numeric columns, "NA" as well.

    Parameters
    ----------
    columns : sequence of str
        One column for classification; any number for multilabel and regression.
    kind : {"classification", "multilabel", "regression"}, optional
        Default: classification for text, multilabel if all numbers are 0 or 1, regression for other numbers.
    where : str
        Name of the table in error messages.

    Returns
    -------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float32 with NaN for unknown.
    kind : str
        Kind of the labels.
    classes : tuple of str
        Class names, sorted (numbers by value); empty for multilabel and regression.

    Raises
    ------
    LabelError
        If a column is blank, mixes numbers and text, or has the same label everywhere.
    """
    if kind not in (None, "classification", "multilabel", "regression"):
        raise LabelError(f"kind {kind!r} is not one of 'classification', 'multilabel', 'regression'")
    numbers = None if kind == "classification" else np.stack([_numbers(table[c]) for c in columns], axis=1)  # (R, C)
    is_text = numbers is not None and np.isinf(numbers).any() and not np.isfinite(numbers).any()
    if kind == "classification" or (kind is None and len(columns) == 1 and is_text):
        if len(columns) > 1:
            raise LabelError(f"{where}: classification needs one label column, not {', '.join(columns)}")
        return _parse_classes(table[columns[0]], columns[0], where)
    bad = np.argwhere(np.isinf(numbers))
    if len(bad):
        row, column = bad[0]
        fault = f"{columns[column]} of label {row + 1} is {str(table[columns[column]][row])!r}, not a finite number"
        hint = "" if kind is not None else ". Leave unknown labels blank, or use --kind classification"
        hint = ". Choose one column with --column" if kind is None and len(columns) > 1 else hint
        raise LabelError(f"{where}: {fault}{hint}.")
    labeled = numbers[~np.isnan(numbers)]
    if labeled.size == 0:
        raise LabelError(f"{where}: {', '.join(columns)} are blank in every row")
    is_binary = bool(np.isin(labeled, (0, 1)).all())
    if kind == "multilabel" and not is_binary:
        raise LabelError(f"{where}: multilabel values must be 0 or 1, not {labeled[~np.isin(labeled, (0, 1))][0]:g}")
    kind = kind or ("multilabel" if is_binary else "regression")
    if kind == "multilabel" and len(columns) == 1 and (labeled == labeled[0]).all():
        raise LabelError(f"{where}: {columns[0]} is {labeled[0]:g} in all labeled rows; two values are needed")
    return numbers.astype(np.float32), kind, ()


def _parse_classes(column: np.ndarray, name: str, where: str) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Parse a column of class names; see :func:`parse_labels`."""
    text = column.tolist()
    classes = sorted(set(text) - set(_BLANK), key=_numeric_order)
    if not classes:
        raise LabelError(f"{where}: column {name!r} is blank in every row")
    if "NA" in classes:
        raise LabelError(
            f"{where}: {name} of label {text.index('NA') + 1} is 'NA', which may mean unknown or be a class.\n"
            "Leave unknown labels blank, and give a class of this name another name, e.g. 'Na+'."
        )
    if len(classes) == 1:
        raise LabelError(f"{where}: {name} is {classes[0]!r} in all labeled rows; two classes are needed")
    code = {name: i for i, name in enumerate(classes)} | dict.fromkeys(_BLANK, -1)
    return np.array([code[t] for t in text], dtype=np.int64), "classification", tuple(classes)


def _numbers(column: np.ndarray) -> np.ndarray:
    """Parse numbers to ``(R,)`` float64: NaN for blank cells, infinity for anything that is not a finite number."""
    number = np.empty(len(column))
    for i, text in enumerate(column.tolist()):
        if text in _UNKNOWN_NUMBER:
            number[i] = np.nan
            continue
        try:
            number[i] = float(text)
        except ValueError:
            number[i] = np.inf
    return number


def _numeric_order(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
