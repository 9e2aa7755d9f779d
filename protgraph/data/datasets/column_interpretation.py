"""Interpretation of the cells of a label column: classes, binary labels or numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from protgraph.data.datasets.label_column import LabelColumn
from protgraph.data.datasets.label_table import LabelTable
from protgraph.errors import LabelError, list_first, suggest

__all__ = ["KINDS", "UNKNOWN_CLASSES", "UNKNOWN_MARKERS", "check_kind", "interpret_column"]

KINDS = ("classification", "multilabel", "regression")
UNKNOWN_CLASSES = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null")
"""Texts that mean unknown in every column."""
UNKNOWN_MARKERS = (*UNKNOWN_CLASSES, "None", "-", "?")
"""Texts that mean unknown among numbers and binary labels. The last three may be the name of a class."""

_BLANK = ("", "nan", "NaN")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d+(\.0*)?")
#: Numbers as spreadsheets show them: thousands separators, decimal commas, percent signs, a Unicode minus.
_FORMATTED = re.compile(
    r"[+\-\u2212]?(\d+|\d{1,3}([,.'’ \u00a0\u2009\u202f]\d{3})+)([.,]\d*)?([eE][+\-\u2212]?\d+)?\s*%?"
)
_LEVELS = re.compile(r"\d+(\.(\d+|-)){2,}")  # 1.1.1.10
#: A column with both words of a pair, in any case, has binary labels; the first word is 0.
_BINARY_WORDS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
_SHOWN_ROWS = 3
_FEW = 10  # distinct integers that may be classes
_LABEL_STRING = 4  # median length of texts of the digits 0 and 1 that are no numbers
_EXACT_DIGITS = 15  # of a float64
_RESOLVED = 1e-5  # least range of the numbers relative to the largest, of which float32 keeps two digits


def interpret_column(
    table: LabelTable,
    name: str,
    *,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    classes: Sequence[str] = (),
    is_alone: bool = True,
) -> LabelColumn:
    """Interpret the cells of a label column.

    Parameters
    ----------
    table : LabelTable
    name : str
        Label column.
    kind : {"classification", "multilabel", "regression"}, optional
        Default: multilabel for 0 and 1 and for two words such as TRUE and FALSE or yes and no, in any case; regression
        for other numbers; classification for other text.
    unknown : collection of str, optional
        Texts that mean unknown besides blank cells and "nan"; any other text is then a label. Default: those in
        :data:`UNKNOWN_MARKERS` among numbers, those in :data:`UNKNOWN_CLASSES` among classes.
    classes : sequence of str
        Class names of a registered task, whose order is used if it has all classes of the column. Default: sorted.
    is_alone : bool
        False for one of several columns of a task, which may have the same label in all rows.

    Raises
    ------
    LabelError
        Numbers and text are mixed, numbers are not plain numbers, all labels are equal, a few integers may be classes
        or numbers, or each row has its own text.
    """
    check_kind(kind)
    what = f"{table.where}: column {name!r}"
    cells = list(zip(table.rows.tolist(), table.labels[name].tolist(), strict=True))
    known = [(row, text) for row, text in cells if text not in _unknown_texts(unknown, UNKNOWN_MARKERS)]
    if not known:
        raise LabelError(f"{what} has no known label. Unknown are blank cells, {', '.join(UNKNOWN_MARKERS)}.")
    has_classes = kind == "classification" or {text for _, text in known} <= set(classes)
    if not has_classes:
        marks = _unknown_texts(unknown, UNKNOWN_MARKERS)
        if kind != "regression" and (pair := _binary_words(known)) is not None:
            return _binary(name, cells, marks, pair)
        decimal = _decimal_mark(table, name)
        if all(_parse(text, decimal) is not None for _, text in known):
            return _numbers(name, cells, known, marks, decimal, kind, what, is_alone=is_alone)
        _check_is_text(known, decimal, kind, what)
    marks = _unknown_texts(unknown, UNKNOWN_CLASSES)
    return _classes(name, cells, marks, classes, what, is_chosen=kind is not None)


def check_kind(kind: str | None) -> None:
    """Raise if a kind is neither None nor one of :data:`KINDS`."""
    if kind is not None and kind not in KINDS:
        raise LabelError(f"kind {kind!r}: not a kind of label.{suggest(str(kind), KINDS)} Kinds: {', '.join(KINDS)}.")


def _unknown_texts(unknown: Collection[str] | None, default: Collection[str]) -> set[str]:
    return {*_BLANK, *(default if unknown is None else unknown)}


def _binary_words(known: Sequence[tuple[int, str]]) -> tuple[str, str] | None:
    """Return the pair of words that are all known labels of a column, in any case."""
    words = {text.lower() for _, text in known}
    return next((pair for pair in _BINARY_WORDS if words == set(pair)), None)


def _binary(name: str, cells: Sequence[tuple[int, str]], marks: Collection[str], pair: tuple[str, str]) -> LabelColumn:
    values = np.array([np.nan if text in marks else pair.index(text.lower()) for _, text in cells], dtype=np.float64)
    positive = next(text for _, text in cells if text.lower() == pair[1])
    classes = {str(i): int((values == i).sum()) for i in (0, 1)}
    return LabelColumn(name, "multilabel", values, classes, _count_unknown(cells, marks), f"{positive!r} is 1")


def _decimal_mark(table: LabelTable, name: str) -> str:
    """Return "," for a column with commas in a table that is separated by semicolons, otherwise "."."""
    has_comma = any("," in text for text in table.labels[name].tolist())
    return "," if table.prefers_comma and has_comma else "."


def _parse(text: str, decimal: str) -> float | None:
    """Return the number in a cell; None for other text."""
    if decimal == ",":
        text = text.replace(".", " ").replace(",", ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def _check_is_text(known: Sequence[tuple[int, str]], decimal: str, kind: str | None, what: str) -> None:
    """Raise if numbers are required, or if some cells are numbers, plain or formatted, and others are text."""
    plain = [_parse(text, decimal) is not None for _, text in known]
    formatted = [_FORMATTED.fullmatch(text) is not None for _, text in known]
    if kind is None and not any(plain) and not any(formatted):
        return
    wrong = [cell for cell, is_plain in zip(known, plain, strict=True) if not is_plain]
    shown = list_first([f"row {row} is {text!r}" for row, text in wrong], _SHOWN_ROWS)
    text = wrong[0][1]
    if _FORMATTED.fullmatch(text):
        advice = "Write plain numbers, e.g. 1234.5: no percent sign, no separators of thousands, a decimal point"
        advice += "" if decimal == "." else " or comma"
    elif text.startswith("#"):
        advice = "Correct the formula in the spreadsheet, or leave the cell blank"
    elif any(map(str.isdigit, text)):
        advice = "Write one number in each cell, or leave unknown labels blank"
    else:
        advice = f"Leave unknown labels blank, or use --unknown {text!r} (unknown=)"
    if kind is None and (2 * len(wrong) >= len(known) or _LEVELS.fullmatch(text)):
        advice += ", or use --kind classification (kind=) if they are classes"
    raise LabelError(f"{what}: {shown}, not a finite number. {advice}.")


def _numbers(
    name: str,
    cells: Sequence[tuple[int, str]],
    known: Sequence[tuple[int, str]],
    marks: Collection[str],
    decimal: str,
    kind: str | None,
    what: str,
    *,
    is_alone: bool,
) -> LabelColumn:
    """Return a column of binary labels or numbers."""
    _check_digits(known, what)
    parsed = [None if text in marks else _parse(text, decimal) for _, text in cells]
    values = np.array([np.nan if value is None else value for value in parsed], dtype=np.float64)
    labels = values[~np.isnan(values)]
    is_binary = bool(np.isin(labels, (0, 1)).all())
    if kind == "multilabel" and not is_binary:
        row, text = next((row, text) for row, text in known if _parse(text, decimal) not in (0, 1))
        raise LabelError(f"{what}: row {row} is {text!r}; labels of kind multilabel are 0 or 1.")
    if is_alone and (labels == labels[0]).all():
        raise LabelError(f"{what} is {known[0][1]!r} in all {len(known)} labeled rows; two values are needed.")
    if kind is None and not is_binary:
        _check_not_classes(known, what)
    _check_float32(labels, what)
    kind = kind or ("multilabel" if is_binary else "regression")
    classes = {str(i): int((labels == i).sum()) for i in (0, 1)} if kind == "multilabel" else {}
    form = "decimal comma" if decimal == "," else ""
    return LabelColumn(name, kind, values, classes, _count_unknown(cells, marks), form)


def _check_digits(known: Sequence[tuple[int, str]], what: str) -> None:
    """Raise for texts of digits that are no numbers: one digit per residue, identifiers."""
    for row, text in known:
        is_long = text.isdigit() and len(text) > _EXACT_DIGITS
        is_padded = text.isdigit() and text.startswith("0") and len(text) > _FEW
        if is_long or is_padded:
            reason = "a leading zero" if is_padded else f"more than {_EXACT_DIGITS} digits"
            start = text if len(text) <= 20 else f"{text[:20]}…"
            raise LabelError(
                f"{what}: row {row} is {start!r}, {len(text)} digits with {reason}: not a number, but an identifier or "
                "one digit per residue. Labels per residue have one row for each residue: columns file, chain, res_id "
                "and the label."
            )
    texts = [text for _, text in known]
    is_long = sorted(map(len, texts))[len(texts) // 2] >= _LABEL_STRING
    if is_long and set("".join(texts)) <= {"0", "1"} and any(text.count("1") > 1 for text in texts):
        row, text = max(known, key=lambda cell: len(cell[1]))
        raise LabelError(
            f"{what}: row {row} is {text!r}, and all digits of the column are 0 or 1: not numbers, but one digit per "
            "residue. Labels per residue have one row for each residue: columns file, chain, res_id and the label."
        )


def _check_not_classes(known: Sequence[tuple[int, str]], what: str) -> None:
    """Raise if a few integers that are repeated may be classes."""
    texts = [text for _, text in known]
    counts = Counter(map(float, texts)) if all(map(_INTEGER.fullmatch, texts)) else Counter()
    if 2 <= len(counts) <= _FEW and len(known) >= 2 * len(counts):
        shown = ", ".join(f"{value:g}" for value in sorted(counts))
        raise LabelError(
            f"{what}: the integers {shown} may be {len(counts)} classes or numbers. "
            "Use --kind classification or --kind regression (kind=)."
        )


def _check_float32(labels: np.ndarray, what: str) -> None:
    """Raise if float32, the type of labels in training, cannot tell the numbers ``(R,)`` apart."""
    limits = np.finfo(np.float32)
    largest, extent = np.abs(labels).max(), labels.max() - labels.min()
    if largest > limits.max / 1e3 or 0 < largest < limits.tiny * 1e3:
        raise LabelError(
            f"{what}: the largest number is {largest:g}. Numbers of float32 lie between 1e-35 and 1e35. Use another "
            "unit."
        )
    if 0 < extent < _RESOLVED * largest:
        raise LabelError(
            f"{what}: numbers from {labels.min():.10g} to {labels.max():.10g} differ by less than float32 can "
            "represent. Subtract a constant from the column."
        )


def _classes(
    name: str,
    cells: Sequence[tuple[int, str]],
    marks: Collection[str],
    classes: Sequence[str],
    what: str,
    *,
    is_chosen: bool,
) -> LabelColumn:
    """Return a column of classes."""
    counts = Counter(text for _, text in cells if text not in marks)
    if not counts:
        raise LabelError(f"{what} has no known label. Unknown are blank cells, {', '.join(UNKNOWN_CLASSES)}.")
    if len(counts) == 1:
        (only,) = counts
        raise LabelError(f"{what} is {only!r} in all {counts[only]} labeled rows; two classes are needed.")
    if not is_chosen and max(counts.values()) == 1:
        shown = list_first(list(map(repr, counts)), 3)
        raise LabelError(
            f"{what}: each of {len(counts)} rows has its own text ({shown}), so that no class can be learned. "
            "Select another column, or use --kind classification (kind=)."
        )
    names = list(classes) if counts.keys() <= set(classes) else sorted(counts, key=_numeric_order)
    code = {text: i for i, text in enumerate(names)}
    values = np.array([code.get(text, -1) for _, text in cells], dtype=np.int64)
    named = {text: counts[text] for text in names}
    return LabelColumn(name, "classification", values, named, _count_unknown(cells, marks))


def _count_unknown(cells: Sequence[tuple[int, str]], marks: Collection[str]) -> dict[str, int]:
    return dict(Counter(text for _, text in cells if text in marks).most_common())


def _numeric_order(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
