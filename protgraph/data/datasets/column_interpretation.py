"""Interpretation of the cells of a label column: classes, binary labels or numbers, or an error if in doubt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from protgraph.data.datasets.label_column import LabelColumn
from protgraph.data.datasets.label_table import LabelTable
from protgraph.data.datasets.number_format import NumberFormat, parse_number, recognize_numbers
from protgraph.errors import LabelError, list_first, suggest

__all__ = ["KINDS", "UNKNOWN_MARKERS", "check_kind", "interpret_column"]

KINDS = ("classification", "multilabel", "regression")
UNKNOWN_MARKERS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "-", "?")
"""Texts that mean unknown among numbers. Among classes they may be a class, e.g. NA for sodium: an error asks."""

_BLANK = ("", "nan", "NaN")
_INTEGER = re.compile(r"[+-]?\d+(\.0*)?")
_LEVELS = re.compile(r"\d+(\.(\d+|-)){2,}")  # 1.1.1.10
_EC_NAMES = ("ec", "ecnumber", "ecnumbers", "ecno", "ecclass", "eccode")  # without spaces and underscores
_YES_NO = (
    *({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"wahr", "falsch"}, {"ja", "nein"}),
    *({"vrai", "faux"}, {"oui", "non"}),
)
_SHOWN_ROWS = 3
_FEW = 10  # distinct integers that may be classes


def interpret_column(
    table: LabelTable,
    name: str,
    *,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    classes: Sequence[str] = (),
    is_alone: bool = True,
) -> LabelColumn:
    """Interpret the cells of a label column, or raise if they have several readings.

    Parameters
    ----------
    table : LabelTable
    name : str
        Label column.
    kind : {"classification", "multilabel", "regression"}, optional
        Default: classification for text, multilabel for 0 and 1, regression for other numbers.
    unknown : collection of str, optional
        Texts that mean unknown besides blank cells and "nan"; any other text is then a label. Default: those in
        :data:`UNKNOWN_MARKERS` among numbers.
    classes : sequence of str
        Class names of a registered task, whose order is used if it has all classes of the column. Default: sorted.
    is_alone : bool
        False for one of several columns of a task, which may have the same label in all rows.

    Raises
    ------
    LabelError
        Numbers and text are mixed, all labels are equal, numbers have two readings (separators; classes 1, 2, 3; EC
        numbers such as 1.1 and 1.10), each row has its own text, or a class may also mean unknown.
    """
    check_kind(kind)
    what = f"{table.where}: column {name!r}"
    cells = list(zip(table.rows.tolist(), table.labels[name].tolist(), strict=True))
    marks = {*_BLANK, *(UNKNOWN_MARKERS if unknown is None and kind != "classification" else unknown or ())}
    known = [(row, text) for row, text in cells if text not in marks]
    if not known:
        raise LabelError(f"{what} has no known label. Unknown are blank cells, {', '.join(UNKNOWN_MARKERS)}.")
    form = None
    if kind != "classification":
        comma = {"prefers_comma": table.prefers_comma, "has_decimal_comma": table.has_decimal_commas(name)}
        form = recognize_numbers(known, what=what, **comma)
        if form is None:
            _check_is_text(known, kind, what)
    if form is not None:
        return _numbers(name, cells, known, marks, form, kind, what, is_alone=is_alone)
    marks = {*_BLANK, *(unknown or ())}
    return _classes(name, cells, marks, classes, what, is_chosen=kind is not None, asks=unknown is None)


def check_kind(kind: str | None) -> None:
    """Raise if a kind is neither None nor one of :data:`KINDS`.

    Raises
    ------
    LabelError
    """
    if kind is not None and kind not in KINDS:
        raise LabelError(f"kind {kind!r}: not a kind of label.{suggest(str(kind), KINDS)} Kinds: {', '.join(KINDS)}.")


def _check_is_text(known: Sequence[tuple[int, str]], kind: str | None, what: str) -> None:
    """Raise if numbers are required, or if some cells are numbers and others are text."""
    numbers = [any(parse_number(t.removesuffix("%"), NumberFormat(m)) is not None for m in ".,") for _, t in known]
    if kind is None and not any(numbers):
        return
    wrong = [cell for cell, is_number in zip(known, numbers, strict=True) if not is_number]
    shown = list_first([f"row {row} is {text!r}" for row, text in wrong], _SHOWN_ROWS)
    text = wrong[0][1]
    if text.startswith("#"):
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
    form: NumberFormat,
    kind: str | None,
    what: str,
    *,
    is_alone: bool,
) -> LabelColumn:
    """Return a column of binary labels or numbers."""
    parsed = [None if text in marks else parse_number(text, form) for _, text in cells]
    values = np.array([np.nan if value is None else value for value in parsed], dtype=np.float64)
    labels = values[~np.isnan(values)]
    is_binary = bool(np.isin(labels, (0, 1)).all()) and not form.is_percent
    if kind == "multilabel" and not is_binary:
        row, text = next((row, text) for row, text in known if parse_number(text, form) not in (0, 1))
        raise LabelError(f"{what}: row {row} is {text!r}; labels of kind multilabel are 0 or 1.")
    if is_alone and (labels == labels[0]).all():
        raise LabelError(f"{what} is {known[0][1]!r} in all {len(known)} labeled rows; two values are needed.")
    if kind is None and not is_binary:
        _check_not_classes(name, known, form, what)
    kind = kind or ("multilabel" if is_binary else "regression")
    classes = {str(i): int((labels == i).sum()) for i in (0, 1)} if kind == "multilabel" else {}
    return LabelColumn(name, kind, values, classes, _unknown(cells, marks), "%" if form.is_percent else "", str(form))


def _check_not_classes(name: str, known: Sequence[tuple[int, str]], form: NumberFormat, what: str) -> None:
    """Raise if numbers may be classes: EC numbers, a few integers that are repeated, 0 and 1 with few others."""
    ask = "Use --kind classification or --kind regression (kind=)."
    texts = [text for _, text in known]
    if re.sub(r"[\s_.\-]", "", name).lower() in _EC_NAMES:
        row, text = known[0]
        raise LabelError(f"{what}: row {row} is {text!r}, which may be an EC number, a class. {ask}")
    first: dict[float, tuple[int, str]] = {}
    for row, text in known:
        before = first.setdefault(parse_number(text, form) or 0.0, (row, text))
        if before[1] != text and "." in before[1] and "." in text and before[1].rstrip("0") == text.rstrip("0"):
            raise LabelError(
                f"{what}: row {before[0]} is {before[1]!r}, row {row} is {text!r}: one number, or two classes. {ask}"
            )
    counts = Counter(map(float, texts)) if all(map(_INTEGER.fullmatch, texts)) else Counter()
    if 2 <= len(counts) <= _FEW and min(counts.values()) >= 2:
        shown = ", ".join(f"{value:g}" for value in sorted(counts))
        raise LabelError(f"{what}: the integers {shown} may be {len(counts)} classes or numbers. {ask}")
    binary = counts[0.0], counts[1.0]
    if 2 < len(counts) <= _FEW and min(binary) >= 2 and 2 * sum(binary) > len(known):
        others = [f"row {row} is {text!r}" for row, text in known if float(text) not in (0, 1)]
        raise LabelError(f"{what}: most labels are 0 or 1, but {list_first(others, _SHOWN_ROWS)}. Correct them. {ask}")


def _classes(
    name: str,
    cells: Sequence[tuple[int, str]],
    marks: Collection[str],
    classes: Sequence[str],
    what: str,
    *,
    is_chosen: bool,
    asks: bool,
) -> LabelColumn:
    """Return a column of classes."""
    counts = Counter(text for _, text in cells if text not in marks)
    for row, text in cells:
        if asks and text in UNKNOWN_MARKERS and text in counts:
            raise LabelError(
                f"{what}: row {row} is {text!r}, which may mean unknown or be a class. "
                f"Use --unknown {text!r} (unknown=), or --unknown '' if it is a class."
            )
    if len(counts) == 1:
        (only,) = counts
        raise LabelError(f"{what} is {only!r} in all {counts[only]} labeled rows; two classes are needed.")
    if not is_chosen and max(counts.values()) == 1:
        shown = list_first(list(map(repr, counts)), 3)
        raise LabelError(
            f"{what}: each of {len(counts)} rows has its own text ({shown}), so that no class can be learned. "
            "Select another column, or use --kind classification (kind=)."
        )
    if not is_chosen:
        _check_spelling(cells, counts, what)
        _check_yes_no(cells, counts, what)
    names = list(classes) if counts.keys() <= set(classes) else sorted(counts, key=_numeric_order)
    code = {text: i for i, text in enumerate(names)}
    values = np.array([code.get(text, -1) for _, text in cells], dtype=np.int64)
    return LabelColumn(name, "classification", values, {text: counts[text] for text in names}, _unknown(cells, marks))


def _check_spelling(cells: Sequence[tuple[int, str]], counts: Mapping[str, int], what: str) -> None:
    """Raise if two classes differ only in case or spaces."""
    first: dict[str, tuple[int, str]] = {}
    for row, text in cells:
        before = first.setdefault(" ".join(text.lower().split()), (row, text)) if text in counts else (row, text)
        if before[1] != text:
            raise LabelError(
                f"{what}: row {before[0]} is {before[1]!r}, row {row} is {text!r}: one class or two. "
                "Write them alike, or use --kind classification (kind=) if they differ."
            )


def _check_yes_no(cells: Sequence[tuple[int, str]], counts: Mapping[str, int], what: str) -> None:
    """Raise if most labels are yes and no, and another class occurs once or is one of these words."""
    words = set().union(*_YES_NO)
    for pair in _YES_NO:
        main = [text for text in counts if text.lower() in pair]
        others = [text for text in counts if text not in main and (counts[text] == 1 or text.lower() in words)]
        if len(main) == 2 and others and 2 * sum(counts[text] for text in main) > sum(counts.values()):
            shown = list_first([f"row {row} is {text!r}" for row, text in cells if text in others], _SHOWN_ROWS)
            raise LabelError(
                f"{what}: most labels are {main[0]!r} or {main[1]!r}, but {shown}. Write them alike, leave unknown "
                "labels blank, or use --kind classification (kind=) if it is a class."
            )


def _unknown(cells: Sequence[tuple[int, str]], marks: Collection[str]) -> dict[str, int]:
    return dict(Counter(text for _, text in cells if text in marks).most_common())


def _numeric_order(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
