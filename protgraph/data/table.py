"""Tables of labels as users write them: comma- or tab-separated text with a header."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from protgraph.errors import LabelError

__all__ = ["Table", "read_table", "read_values", "residue_numbers"]

Table = Mapping[str, np.ndarray]
"""Columns by name, each ``(R,)`` str, blanks as ""."""

UNKNOWN_NUMBER = ("", "nan", "NaN", "NA")
_RESIDUE = re.compile(r"\s*([+-]?\d+)\s*([A-Za-z]?)\s*")


def read_table(path: str | Path) -> dict[str, np.ndarray]:
    """Read a table as texts; the separator is a tab if the header holds one, else a comma.

    Raises
    ------
    LabelError
        The file is missing, empty, not UTF-8, repeats a column, or a row has another number of columns.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            rows = list(csv.reader(file, delimiter="\t" if "\t" in header else ",", strict=True))
    except OSError as e:
        raise LabelError(f"no table of labels at {str(path)!r}: {e.strerror}") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise LabelError(f"{path} is not comma- or tab-separated UTF-8 text: {e}") from e
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
    columns = zip(*(row for _, row in lines[1:]), strict=True)
    return {name: np.char.strip(np.array(column)) for name, column in zip(names, columns, strict=True)}


def residue_numbers(table: Table, where: str) -> tuple[np.ndarray, np.ndarray]:
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
    table: Table, columns: Sequence[str], kind: str | None, where: str
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Label columns as numbers; blanks are unknown.

    Parameters
    ----------
    columns : sequence of str
        One for classes; any number for yes/no labels and values.
    kind : {"classes", "labels", "values"}, optional
        By default texts are classes, numbers that are all 0 or 1 are yes/no labels, other numbers are values.

    Returns
    -------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float32 with NaN for unknown.
    kind : str
        What they are.
    classes : tuple of str
        The classes in sorted order (numbers by size); empty otherwise.
    """
    if kind not in (None, "classes", "labels", "values"):
        raise LabelError(f"kind {kind!r} is none of 'classes', 'labels', 'values'")
    numbers = None if kind == "classes" else np.stack([_numbers(table[c]) for c in columns], axis=1)  # (R, C)
    bad = None if numbers is None else np.argwhere(np.isinf(numbers))
    if kind == "classes" or (kind is None and len(bad) and len(columns) == 1):
        if len(columns) > 1:
            raise LabelError(f"{where}: classes stand in one column, not in {', '.join(columns)}")
        text = table[columns[0]]
        classes = sorted(set(text.tolist()) - {""}, key=_by_size)
        if not classes:
            raise LabelError(f"{where}: column {columns[0]!r} is blank in every row")
        place = {name: i for i, name in enumerate(classes)} | {"": -1}
        return np.array([place[t] for t in text.tolist()], dtype=np.int64), "classes", tuple(classes)
    if len(bad):
        row, column = bad[0]
        given = str(table[columns[column]][row])
        hint = "; choose one column with columns=" if kind is None else ""
        raise LabelError(f"{where}: {columns[column]} of label {row + 1} is {given!r}, not a finite number{hint}")
    known = numbers[~np.isnan(numbers)]
    if known.size == 0:
        raise LabelError(f"{where}: {', '.join(columns)} are blank in every row")
    yes_no = bool(np.isin(known, (0, 1)).all())
    if kind == "labels" and not yes_no:
        raise LabelError(f"{where}: yes/no labels are 0 or 1; got {known[~np.isin(known, (0, 1))][0]:g}")
    return numbers.astype(np.float32), kind or ("labels" if yes_no else "values"), ()


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
