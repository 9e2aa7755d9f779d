"""Tables of labels as users write them: text with a header, columns separated by commas, tabs or semicolons.

Semicolons are what spreadsheets write where the decimal sign is a comma, so in such a table ``40,5`` is 40.5.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from protgraph.errors import LabelError

__all__ = ["LabelTable", "read_label_table", "read_values", "residue_numbers"]

LabelTable = Mapping[str, np.ndarray]
"""Columns by name, each ``(R,)`` str, blanks as ""."""

BLANK = ("", "nan", "NaN")
UNKNOWN_NUMBER = (*BLANK, "NA")
_RESIDUE = re.compile(r"\s*([+-]?\d+)\s*([A-Za-z]?)\s*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


def read_label_table(path: str | Path) -> dict[str, np.ndarray]:
    """Read a table as texts; what separates is the tab, comma or semicolon that the header holds, in this order.

    Raises
    ------
    LabelError
        The file is missing, empty, not UTF-8, repeats a column, or a row has another number of columns.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            separator = next((mark for mark in "\t,;" if mark in header), ",")
            rows = list(csv.reader(file, delimiter=separator, strict=True))
    except OSError as e:
        raise LabelError(f"no table of labels at {str(path)!r}: {e.strerror}") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise LabelError(f"{path} is no UTF-8 text with columns between commas, tabs or semicolons: {e}") from e
    lines = [(number, row) for number, row in enumerate(rows, start=1) if any(map(str.strip, row))]
    if len(lines) < 2:
        raise LabelError(f"{path} holds no labels: it needs a header and at least one row")
    names = [name.strip() for name in lines[0][1]]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise LabelError(f"{path}: column {twice[0]!r} is there more than once")
    for number, row in lines[1:]:
        if len(row) != len(names):
            raise LabelError(f"{path}: row {number} has {len(row)} columns, the header {len(names)}")
    found = [row if separator != ";" else [_pointed(text) for text in row] for _, row in lines[1:]]
    columns = zip(*found, strict=True)
    return {name: np.char.strip(np.array(column)) for name, column in zip(names, columns, strict=True)}


def _pointed(text: str) -> str:
    """``40,5`` as ``40.5``; any other text as it is."""
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text.strip()) else text


def residue_numbers(table: LabelTable, where: str) -> tuple[np.ndarray, np.ndarray]:
    """``(R,)`` int64 residue numbers and ``(R,)`` str insertion codes, which may also stand as ``100B`` in res_id."""
    matches = [_RESIDUE.fullmatch(text) for text in table["res_id"].tolist()]
    codes = table.get("ins_code")
    for i, match in enumerate(matches):
        if match is None or (match[2] and codes is not None and codes[i] not in ("", match[2])):
            given = f"res_id {str(table['res_id'][i])!r}" + ("" if codes is None else f", ins_code {str(codes[i])!r}")
            raise LabelError(f"{where}: label {i + 1} has {given}; a residue is '42' or '100B'")
    number = np.array([int(match[1]) for match in matches], dtype=np.int64)
    inside = np.array([match[2] for match in matches])
    return number, inside if codes is None else np.where(codes == "", inside, codes)


def read_values(
    table: LabelTable, columns: Sequence[str], kind: str | None, where: str
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Label columns as numbers; blanks and "nan" are unknown, in columns of numbers "NA" too.

    Parameters
    ----------
    columns : sequence of str
        One for classes; any number for yes/no labels and values.
    kind : {"classification", "multilabel", "regression"}, optional
        By default texts are classes, numbers that are all 0 or 1 are yes/no labels, other numbers are values.

    Returns
    -------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float32 with NaN for unknown.
    kind : str
        What they are.
    classes : tuple of str
        The classes in sorted order (numbers by size); empty otherwise.

    Raises
    ------
    LabelError
        A column is blank, mixes numbers and texts, or says the same of everything.
    """
    if kind not in (None, "classification", "multilabel", "regression"):
        raise LabelError(f"kind {kind!r} is none of 'classification', 'multilabel', 'regression'")
    numbers = None if kind == "classification" else np.stack([_numbers(table[c]) for c in columns], axis=1)  # (R, C)
    no_numbers = numbers is not None and np.isinf(numbers).any() and not np.isfinite(numbers).any()
    if kind == "classification" or (kind is None and len(columns) == 1 and no_numbers):
        if len(columns) > 1:
            raise LabelError(f"{where}: classes stand in one column, not in {', '.join(columns)}")
        return _classes(table[columns[0]], columns[0], where)
    bad = np.argwhere(np.isinf(numbers))
    if len(bad):
        row, column = bad[0]
        given = f"{columns[column]} of label {row + 1} is {str(table[columns[column]][row])!r}, not a finite number"
        hint = "" if kind is not None else "; leave unknown ones blank, or say that these are classes (--kind, kind=)"
        hint = "; choose one column (--column, columns=)" if kind is None and len(columns) > 1 else hint
        raise LabelError(f"{where}: {given}{hint}")
    known = numbers[~np.isnan(numbers)]
    if known.size == 0:
        raise LabelError(f"{where}: {', '.join(columns)} are blank in every row")
    yes_no = bool(np.isin(known, (0, 1)).all())
    if kind == "multilabel" and not yes_no:
        raise LabelError(f"{where}: yes/no labels are 0 or 1; got {known[~np.isin(known, (0, 1))][0]:g}")
    kind = kind or ("multilabel" if yes_no else "regression")
    if kind == "multilabel" and len(columns) == 1 and (known == known[0]).all():
        raise LabelError(f"{where}: {columns[0]} is {known[0]:g} wherever it is known; there is nothing to tell apart")
    return numbers.astype(np.float32), kind, ()


def _classes(column: np.ndarray, name: str, where: str) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """A column of texts as :func:`read_values` returns it."""
    text = column.tolist()
    classes = sorted(set(text) - set(BLANK), key=_by_size)
    if not classes:
        raise LabelError(f"{where}: column {name!r} is blank in every row")
    if "NA" in classes:
        raise LabelError(
            f"{where}: {name} of label {text.index('NA') + 1} is 'NA', which may mean unknown or be a class\n"
            "Leave unknown ones blank; write a class of this name otherwise, as 'Na+'."
        )
    if len(classes) == 1:
        raise LabelError(f"{where}: {name} is {classes[0]!r} wherever it is known; there is nothing to tell apart")
    place = {known: i for i, known in enumerate(classes)} | dict.fromkeys(BLANK, -1)
    return np.array([place[t] for t in text], dtype=np.int64), "classification", tuple(classes)


def _numbers(column: np.ndarray) -> np.ndarray:
    """``(R,)`` float64: NaN for blanks, infinity for what is no finite number."""
    number = np.empty(len(column))
    for i, text in enumerate(column.tolist()):
        if text in UNKNOWN_NUMBER:
            number[i] = np.nan
            continue
        try:
            number[i] = float(text)
        except ValueError:
            number[i] = np.inf
    return number


def _by_size(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
