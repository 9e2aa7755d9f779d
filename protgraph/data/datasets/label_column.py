"""Columns of a label table as they are understood: kind, classes and unknown cells; columns that are no labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from protgraph.data.datasets.label_table import LabelTable
from protgraph.data.datasets.splits import LabelStrata, label_strata
from protgraph.data.datasets.target import Target
from protgraph.errors import LabelError, list_first, suggest
from protgraph.structure.residues.alphabet import ALPHABET, aatype

__all__ = [
    "KINDS",
    "UNKNOWN_CLASSES",
    "UNKNOWN_MARKERS",
    "FolderLabels",
    "LabelColumn",
    "ResidueLetters",
    "check_kind",
    "combine_columns",
    "find_residue_letters",
    "interpret_column",
    "read_labels",
]

Kind = Literal["classification", "multilabel", "regression"]
KINDS: tuple[Kind, ...] = ("classification", "multilabel", "regression")
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
_SHOWN_CLASSES = 12
_FEW_ROWS = 3  # one for each of train, val and test
_LISTED = 5  # rare classes in a message

_Cells = Sequence[tuple[int, str]]  # number and text of each row of a column

#: Names of a column of residue types, in lower case without separators.
_RESIDUE_NAMES = frozenset(
    ("resname", "resn", "residuename", "residuetype", "restype", "residue", "aa", "aminoacid", "authcompid", "pdbres")
)


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """Interpretation of the cells of a label column.

    Parameters
    ----------
    kind : {"classification", "multilabel", "regression"}
        Classes, binary labels (0 and 1), or numbers.
    values : ndarray
        ``(R,)`` int64 class of each row with −1 for unknown, or ``(R,)`` float64 with NaN for unknown.
    classes : mapping of str to int
        Classes in order, or the labels "0" and "1", with the number of rows of each; empty for regression.
    unknown : mapping of str to int
        Number of rows of each text that means unknown; "" for blank cells.
    form : str
        How labels are written if they are neither plain numbers nor 0 and 1, e.g. "decimal comma", "'TRUE' is 1".
    """

    name: str
    kind: Kind
    values: np.ndarray = field(repr=False)
    classes: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    form: str = ""

    @property
    def is_known(self) -> np.ndarray:
        """``(R,)`` bool, True for rows with a label."""
        return self.values >= 0 if self.kind == "classification" else ~np.isnan(self.values)

    @property
    def labeled(self) -> int:
        """Number of rows with a label."""
        return int(self.is_known.sum())

    @property
    def range(self) -> tuple[float, float, float] | None:
        """Least, mean and largest number; None for classes and binary labels."""
        if self.kind != "regression":
            return None
        known = self.values[self.is_known]
        return float(known.min()), float(known.mean()), float(known.max())

    def __str__(self) -> str:
        """Return one line, e.g. "site: binary labels, 2 of 40 rows positive; unknown: 3 blank"."""
        if self.kind == "classification":
            counts = list_first([f"{name} {number}" for name, number in self.classes.items()], _SHOWN_CLASSES)
            text = f"{len(self.classes)} classes, {self.labeled} rows ({counts})"
        elif self.kind == "multilabel":
            text = f"binary labels, {self.classes['1']} of {self.labeled} rows positive"
        else:
            low, mean, high = self.range or (0.0, 0.0, 0.0)
            text = f"numbers, {self.labeled} rows from {low:.4g} to {high:.4g}, mean {mean:.4g}"
        text += f" ({self.form})" if self.form else ""
        if self.unknown:
            marks = ", ".join(f"{number} {repr(mark) if mark else 'blank'}" for mark, number in self.unknown.items())
            text += f"; unknown: {marks}"
        return f"{self.name}: {text}"


def combine_columns(columns: Sequence[LabelColumn], where: str) -> tuple[np.ndarray, Kind, tuple[str, ...]]:
    """Return the values, the kind and the class names of a task with these columns.

    Returns ``values``: ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float32 with NaN for unknown. ``kind``: binary
    labels together with numbers are regression. ``classes``: empty for multilabel and regression.
    """
    kinds = [column.kind for column in columns]
    if "classification" in kinds:
        if len(columns) > 1:
            text = columns[kinds.index("classification")].name
            raise LabelError(
                f"{where}: column {text!r} has classes; a task of several columns has numbers. Select one column."
            )
        return columns[0].values, kinds[0], tuple(columns[0].classes)
    values = np.stack([column.values for column in columns], axis=1).astype(np.float32)  # (R, C)
    return values, "multilabel" if set(kinds) == {"multilabel"} else "regression", ()


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
    chosen = check_kind(kind)
    column_text = f"{table.where}: column {name!r}"
    cells = list(zip(table.rows.tolist(), table.labels[name].tolist(), strict=True))
    marks = _unknown_texts(unknown, UNKNOWN_MARKERS)
    known = [(row, text) for row, text in cells if text not in marks]
    if not known:
        raise LabelError(f"{column_text} has no known label. Unknown are blank cells, {', '.join(UNKNOWN_MARKERS)}.")
    has_classes = kind == "classification" or {text for _, text in known} <= set(classes)
    if not has_classes:
        if kind != "regression" and (pair := _binary_words(known)) is not None:
            return _binary(name, cells, marks, pair)
        decimal = _decimal_mark(table, name)
        if all(_parse(text, decimal) is not None for _, text in known):
            return _numbers(name, cells, known, marks, decimal, chosen, column_text, is_alone=is_alone)
        _check_is_text(known, decimal, kind, column_text)
    marks = _unknown_texts(unknown, UNKNOWN_CLASSES)
    return _classes(name, cells, marks, classes, column_text, is_chosen=kind is not None)


def check_kind(kind: str | None) -> Kind | None:
    """Return a kind; raise if it is neither None nor one of :data:`KINDS`."""
    for known in KINDS:
        if known == kind:
            return known
    if kind is not None:
        raise LabelError(f"kind {kind!r}: not a kind of label.{suggest(str(kind), KINDS)} Kinds: {', '.join(KINDS)}.")
    return None


def _unknown_texts(unknown: Collection[str] | None, default: Collection[str]) -> set[str]:
    return {*_BLANK, *(default if unknown is None else unknown)}


def _binary_words(known: _Cells) -> tuple[str, str] | None:
    """Return the pair of words that are all known labels of a column, in any case."""
    words = {text.lower() for _, text in known}
    return next((pair for pair in _BINARY_WORDS if words == set(pair)), None)


def _binary(name: str, cells: _Cells, marks: Collection[str], pair: tuple[str, str]) -> LabelColumn:
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


def _check_is_text(known: _Cells, decimal: str, kind: str | None, where: str) -> None:
    """Raise if numbers are required, or if some cells are numbers, plain or formatted, and others are text."""
    wrong, has_numbers = [], False
    for row, text in known:
        is_plain = _parse(text, decimal) is not None
        if not is_plain:
            wrong.append((row, text))
        if is_plain or _FORMATTED.fullmatch(text):
            has_numbers = True
    if kind is None and not has_numbers:
        return
    wrong_rows = list_first([f"row {row} is {text!r}" for row, text in wrong], _SHOWN_ROWS)
    text = wrong[0][1]
    advice = _advice(text, decimal)
    may_be_classes = 2 * len(wrong) >= len(known) or _LEVELS.fullmatch(text)
    if kind is None and may_be_classes:
        advice += ", or use --kind classification (kind=) if they are classes"
    raise LabelError(f"{where}: {wrong_rows}, not a finite number. {advice}.")


def _advice(text: str, decimal: str) -> str:
    """Return how to correct a cell that should be a number."""
    if _FORMATTED.fullmatch(text):
        mark = "point" if decimal == "." else "point or comma"
        return f"Write plain numbers, e.g. 1234.5: no percent sign, no separators of thousands, a decimal {mark}"
    if text.startswith("#"):
        return "Correct the formula in the spreadsheet, or leave the cell blank"
    if any(map(str.isdigit, text)):
        return "Write one number in each cell, or leave unknown labels blank"
    return f"Leave unknown labels blank, or use --unknown {text!r} (unknown=)"


def _numbers(
    name: str,
    cells: _Cells,
    known: _Cells,
    marks: Collection[str],
    decimal: str,
    kind: Kind | None,
    where: str,
    *,
    is_alone: bool,
) -> LabelColumn:
    _check_digits(known, where)
    _check_label_strings(known, where)
    values = np.full(len(cells), np.nan)
    for i, (_, text) in enumerate(cells):
        number = None if text in marks else _parse(text, decimal)
        if number is not None:
            values[i] = number
    labels = values[~np.isnan(values)]
    is_binary = bool(np.isin(labels, (0, 1)).all())
    if kind == "multilabel":
        _require_binary(known, decimal, where)
    if is_alone and (labels == labels[0]).all():
        raise LabelError(f"{where} is {known[0][1]!r} in all {len(known)} labeled rows; two values are needed.")
    if kind is None:
        if not is_binary:
            _check_not_classes(known, where)
        kind = "multilabel" if is_binary else "regression"
    _check_float32(labels, where)
    classes = {}
    if kind == "multilabel":
        classes = {"0": int((labels == 0).sum()), "1": int((labels == 1).sum())}
    form = "decimal comma" if decimal == "," else ""
    return LabelColumn(name, kind, values, classes, _count_unknown(cells, marks), form)


def _require_binary(known: _Cells, decimal: str, where: str) -> None:
    for row, text in known:
        if _parse(text, decimal) not in (0, 1):
            raise LabelError(f"{where}: row {row} is {text!r}; labels of kind multilabel are 0 or 1.")


def _check_digits(known: _Cells, where: str) -> None:
    """Raise for texts of digits that are no numbers: one digit per residue, identifiers."""
    for row, text in known:
        if not text.isdigit():
            continue
        is_padded = text.startswith("0") and len(text) > _FEW
        if len(text) > _EXACT_DIGITS or is_padded:
            reason = "a leading zero" if is_padded else f"more than {_EXACT_DIGITS} digits"
            start = text if len(text) <= 20 else f"{text[:20]}…"
            raise LabelError(
                f"{where}: row {row} is {start!r}, {len(text)} digits with {reason}: not a number, but an identifier "
                "or one digit per residue. Labels per residue have one row for each residue: columns file, chain, "
                "res_id and the label."
            )


def _check_label_strings(known: _Cells, where: str) -> None:
    """Raise if the cells are long texts of 0 and 1, one digit per residue."""
    texts = [text for _, text in known]
    median_length = sorted(map(len, texts))[len(texts) // 2]
    if median_length < _LABEL_STRING or not set("".join(texts)) <= {"0", "1"}:
        return
    if any(text.count("1") > 1 for text in texts):
        row, text = max(known, key=lambda cell: len(cell[1]))
        raise LabelError(
            f"{where}: row {row} is {text!r}, and all digits of the column are 0 or 1: not numbers, but one digit per "
            "residue. Labels per residue have one row for each residue: columns file, chain, res_id and the label."
        )


def _check_not_classes(known: _Cells, where: str) -> None:
    """Raise if a few integers that are repeated may be classes."""
    texts = [text for _, text in known]
    counts = Counter(map(float, texts)) if all(map(_INTEGER.fullmatch, texts)) else Counter()
    if 2 <= len(counts) <= _FEW and len(known) >= 2 * len(counts):
        shown = ", ".join(f"{value:g}" for value in sorted(counts))
        raise LabelError(
            f"{where}: the integers {shown} may be {len(counts)} classes or numbers. "
            "Use --kind classification or --kind regression (kind=)."
        )


def _check_float32(labels: np.ndarray, where: str) -> None:
    """Raise if float32, the type of labels in training, cannot tell the numbers ``(R,)`` apart."""
    limits = np.finfo(np.float32)
    largest, extent = np.abs(labels).max(), labels.max() - labels.min()
    if largest > limits.max / 1e3 or 0 < largest < limits.tiny * 1e3:
        raise LabelError(
            f"{where}: the largest number is {largest:g}. Numbers of float32 lie between 1e-35 and 1e35. Use another "
            "unit."
        )
    if 0 < extent < _RESOLVED * largest:
        raise LabelError(
            f"{where}: numbers from {labels.min():.10g} to {labels.max():.10g} differ by less than float32 can "
            "represent. Subtract a constant from the column."
        )


def _classes(
    name: str,
    cells: _Cells,
    marks: Collection[str],
    classes: Sequence[str],
    where: str,
    *,
    is_chosen: bool,
) -> LabelColumn:
    counts = Counter(text for _, text in cells if text not in marks)
    if not counts:
        raise LabelError(f"{where} has no known label. Unknown are blank cells, {', '.join(UNKNOWN_CLASSES)}.")
    if len(counts) == 1:
        (only,) = counts
        raise LabelError(f"{where} is {only!r} in all {counts[only]} labeled rows; two classes are needed.")
    if not is_chosen and max(counts.values()) == 1:
        shown = list_first(list(map(repr, counts)), 3)
        raise LabelError(
            f"{where}: each of {len(counts)} rows has its own text ({shown}), so that no class can be learned. "
            "Select another column, or use --kind classification (kind=)."
        )
    names = list(classes) if counts.keys() <= set(classes) else sorted(counts, key=_numeric_order)
    code = {text: i for i, text in enumerate(names)}
    values = np.array([code.get(text, -1) for _, text in cells], dtype=np.int64)
    named = {text: counts[text] for text in names}
    return LabelColumn(name, "classification", values, named, _count_unknown(cells, marks))


def _count_unknown(cells: _Cells, marks: Collection[str]) -> dict[str, int]:
    return dict(Counter(text for _, text in cells if text in marks).most_common())


def _numeric_order(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


class ResidueLetters(NamedTuple):
    """Name of the column, and the one-letter code of each row, ``(R,)`` str."""

    column: str
    codes: np.ndarray


def find_residue_letters(table: LabelTable, labels: Collection[str]) -> ResidueLetters | None:
    """Return the residue types of a table, from a column that is not a label of the task; None if it has none."""
    for name, cells in table.labels.items():
        if name in labels or re.sub(r"[\s_.\-]", "", name).lower() not in _RESIDUE_NAMES:
            continue
        texts = np.char.upper(cells)
        known = {text: _letter(text) for text in np.unique(texts).tolist()}
        if all(text == "" or len(text) in (1, 3) for text in known) and any(code != "X" for code in known.values()):
            return ResidueLetters(name, np.array([known[text] for text in texts.tolist()]))
    return None


def _letter(text: str) -> str:
    """Return the one-letter code of a residue name of one or three letters; "X" for another."""
    if len(text) == 1:
        return text if text in ALPHABET else "X"
    return ALPHABET[aatype(text)] if text else "X"


@dataclass(frozen=True, eq=False)
class FolderLabels:
    """Label columns of a task as they were understood; without columns, the target of a task that computes labels."""

    task: str = ""  # name of the task; empty without one
    target: Target | None = None
    columns: tuple[LabelColumn, ...] = ()
    # ``(T,)`` classes or ``(T, C)``, labels of the T rows of the table; −1 or NaN for unknown
    values: np.ndarray | None = None
    letters: ResidueLetters | None = None  # residue types that the table has beside the labels

    @property
    def names(self) -> list[str]:
        """Names of the label columns."""
        return [column.name for column in self.columns]

    @property
    def strata(self) -> LabelStrata | None:
        """Strata of the labels, which random splits balance."""
        return None if self.values is None or self.target is None else label_strata(self.values, self.target)

    @property
    def notes(self) -> list[str]:
        """Messages for the user on residue types and on rare classes."""
        notes = []
        if self.letters is not None:
            notes.append(f"column {self.letters.column!r} is compared with the residue types of the structures")
        for column in self.columns:
            rare = [f"{name} {number}" for name, number in column.classes.items() if 0 < number < _FEW_ROWS]
            if rare:
                notes.append(f"{column.name}: classes with fewer than {_FEW_ROWS} rows: {list_first(rare, _LISTED)}")
        return notes

    def __str__(self) -> str:
        """Return one line per column."""
        return "\n".join(map(str, self.columns)) or f"task {self.task or 'none'} without label columns"


def read_labels(
    table: LabelTable | None,
    names: Sequence[str],
    *,
    task: str | None = None,
    kind: str | None = None,
    unknown: Collection[str] | None = None,
    classes: Sequence[str] = (),
) -> FolderLabels:
    """Interpret the label columns of a task; without any, there is no task. See :class:`FolderDataset`."""
    if table is None or not names:
        return FolderLabels()
    letters = find_residue_letters(table, names) if table.is_per_residue else None
    interpreted = tuple(
        interpret_column(table, name, kind=kind, unknown=unknown, classes=classes, is_alone=len(names) == 1)
        for name in names
    )
    values, task_kind, class_names = combine_columns(interpreted, table.where)
    value_names = tuple(class_names or names)
    level: Literal["node", "graph"] = "node" if table.is_per_residue else "graph"
    target = Target(task or "+".join(names), level, task_kind, len(value_names), value_names)
    return FolderLabels(target.name, target, interpreted, values, letters)
