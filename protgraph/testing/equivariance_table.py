"""Table of the largest equivariance error of every component, by floating type and device."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from textwrap import dedent

import torch

from protgraph.errors import ProtgraphError
from protgraph.testing.component import Component
from protgraph.testing.runner import ConformityError, MissingExtra, Runner
from protgraph.testing.symmetry import rotations

__all__ = [
    "COLUMNS",
    "EquivarianceRow",
    "Precision",
    "equivariance_csv",
    "equivariance_markdown",
    "measure_equivariance",
]

_LARGEST = 5  # rows of the page that are within their limits


@dataclass(frozen=True)
class Precision:
    """One way to compute: device, floating type and precision of matrix products."""

    title: str
    device: str
    dtype: torch.dtype
    tf32: bool = False
    autocast: bool = False

    @property
    def has_limit(self) -> bool:
        """False for products of less precision than float32."""
        return not (self.tf32 or self.autocast)


#: bf16 is automatic mixed precision: coordinates 100 Å off center have no half digit in bfloat16 itself.
COLUMNS = (
    Precision("float64, CPU", "cpu", torch.float64),
    Precision("float32, CPU", "cpu", torch.float32),
    Precision("float64, CUDA", "cuda", torch.float64),
    Precision("float32, CUDA", "cuda", torch.float32),
    Precision("TF32, CUDA", "cuda", torch.float32, tf32=True),
    Precision("bf16, CUDA", "cuda", torch.float32, autocast=True),
)


@dataclass
class EquivarianceRow:
    """The errors of one component.

    ``component``: "layer gat". ``tolerance``: stated for float32; None if the component cannot be loaded. ``errors``:
    the largest error by column title, or why there is none. ``notes``: by column title, the stated reason of an error
    beyond the limit.
    """

    component: str
    tolerance: float | None = None
    errors: dict[str, float | str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def has_no_value(self) -> bool:
        """True if one of the errors could not be measured."""
        return any(isinstance(error, str) for error in self.errors.values())

    def share_of_tolerance(self) -> float:
        """Return the largest error in float32, divided by the tolerance; 0 without either."""
        if self.tolerance is None:
            return 0.0
        titles = [column.title for column in COLUMNS if column.has_limit and column.dtype == torch.float32]
        errors = [self.errors.get(title) for title in titles]
        return max((error for error in errors if isinstance(error, float)), default=0.0) / self.tolerance


def measure_equivariance(component: Component) -> EquivarianceRow:
    """Measure the largest error over a component's wirings for each column that this machine can compute.

    The error is ``max |Q⁻¹ f(Q x + t) − f(x)| / max |f(x)|`` over 32 rotations with translations of 100 to 300 Å, with
    f(x) from float64 on the CPU.
    """
    row = EquivarianceRow(str(component))
    for column in _columns_of(component):
        runner = Runner(component, column.device, column.dtype)
        try:
            with _matrix_products(column), runner.errors_as_failures(column.title):
                row.tolerance = component.conformity.tolerance
                errors = [(runner.transform_error(w, rotations()) or 0.0, runner.limit(w)) for w in runner.wirings]
        except MissingExtra:
            row.errors[column.title] = "not installed"
        except (ConformityError, ProtgraphError) as e:
            row.errors[column.title] = f"fails ({str(e).splitlines()[0]})"
        else:
            row.errors[column.title] = max(error for error, _ in errors)
            if column.has_limit and any(not error <= limit for error, limit in errors):
                row.notes[column.title] = _reason(component, column)
    return row


def _reason(component: Component, column: Precision) -> str:
    """Return the stated reason of an error beyond the limit."""
    expected = component.conformity.expected_failures
    checks = ("rotation",) if column.dtype == torch.float64 else ("rotation", "float32")
    stated = [expected[check] for check in checks if check in expected]
    return f"Expected failure: {stated[0]}." if stated else "Fails: beyond the tolerance, and not stated as expected."


def _columns_of(component: Component) -> list[Precision]:
    """Return the columns of a component: featurizers compute before a graph is moved to a device."""
    return [c for c in _columns() if c.device == "cpu" or component.kind != "featurizer"]


def _columns() -> tuple[Precision, ...]:
    """Return the columns that this machine can compute."""
    return tuple(c for c in COLUMNS if c.device == "cpu" or torch.cuda.is_available())


def equivariance_csv(rows: Sequence[EquivarianceRow]) -> str:
    """Format the errors of all components as CSV, with the reason of each error beyond its limit."""
    titles = [column.title for column in _columns()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["component", *titles, "float32 tolerance", "note"])
    for row in rows:
        cells = [_cell(row, title) for title in titles]
        reasons = dict.fromkeys(row.notes.values())  # each once
        writer.writerow([row.component, *cells, _tolerance(row), " ".join(reasons)])
    return text.getvalue()


def equivariance_markdown(rows: Sequence[EquivarianceRow], *, table: str, command: str) -> str:
    """Format a page about the errors: how to read them, the largest ones, and those beyond their limits.

    ``table``: link to the CSV file with the errors of all components. ``command``: command that measured the errors.
    """
    titles = [column.title for column in _columns()]
    beyond = [row for row in rows if row.notes]
    within = [row for row in rows if not row.notes]
    within.sort(key=EquivarianceRow.share_of_tolerance, reverse=True)
    without_value = [row.component for row in rows if row.has_no_value]

    sections = ["# Equivariance errors", _introduction()]
    sections.append(f"[{table}]({table}) has the errors of all {len(rows)} components. {_source(command)}")
    sections.append("## Largest errors")
    sections.append("These components are within their limits, and come closest to their tolerance in float32.")
    sections.append(_markdown_table(within[:_LARGEST], titles, {}))
    if beyond:
        numbers = _number_notes(beyond, titles)
        sections.append("## Beyond the limit")
        sections.append(_markdown_table(beyond, titles, numbers))
        sections.append("\n".join(f"[^{number}]: {note}" for note, number in numbers.items()))
    if without_value:
        sections.append("## Not measured")
        names = ", ".join(without_value)
        sections.append(f"The CSV file has the reason why errors of these components are missing: {names}.")
    return "\n\n".join(sections) + "\n"


def _markdown_table(rows: Sequence[EquivarianceRow], titles: Sequence[str], numbers: Mapping[str, int]) -> str:
    """Format rows as a Markdown table; ``numbers`` are those of the footnotes."""
    lines = [_line(["component", *titles, "float32 tolerance"]), _line(["---", *["---:"] * (len(titles) + 1)])]
    lines += [_row_line(row, titles, numbers) for row in rows]
    return "\n".join(lines)


def _source(command: str) -> str:
    """Say with which command, machine and versions the errors were measured."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "torch-geometric", "e3nn"))
    machine = platform.processor() or platform.machine()
    if torch.cuda.is_available():
        machine += f", {torch.cuda.get_device_name(0)} (CUDA {torch.version.cuda})"
    return f"Written by `{command}` on {machine}; Python {platform.python_version()}, {versions}."


def _introduction() -> str:
    text = """
        Each number is the largest relative difference `max |Q⁻¹ f(Q x + t) − f(x)| / max |f(x)|` between the output of
        a component for a moved protein, moved back, and its output for the unmoved protein in float64. It is taken
        over 32 Haar-random rotations Q with translations t of 100 to 300 Å, and over all wirings of the component.
        Layers and heads read exact inputs that are rounded once; models read coordinates.

        In float64, an error above 1e-10 is a failure, except for featurizers that compute in float32. In float32, the
        limit is the component's tolerance, in the last column. An error with a footnote is beyond its limit: the
        component states this failure and its reason, and the conformity suite checks that it still occurs. Products
        in TF32 and automatic mixed precision with bfloat16 have no limit: their columns show what they cost.
    """
    return dedent(text).strip()


def _number_notes(rows: Sequence[EquivarianceRow], titles: Sequence[str]) -> dict[str, int]:
    """Return the number of each different note, from 1, in the order of rows and columns."""
    numbers: dict[str, int] = {}
    for row in rows:
        for title in titles:
            if title in row.notes:
                numbers.setdefault(row.notes[title], len(numbers) + 1)
    return numbers


def _row_line(row: EquivarianceRow, titles: Sequence[str], numbers: Mapping[str, int]) -> str:
    """Format the errors and the tolerance of a component, with the numbers of its footnotes."""
    cells = []
    for title in titles:
        cell = _cell(row, title)
        if isinstance(row.errors.get(title), str):
            cell = "not measured"  # the CSV file has the reason
        if title in row.notes:
            cell += f" [^{numbers[row.notes[title]]}]"
        cells.append(cell)
    return _line([row.component, *cells, _tolerance(row)])


def _tolerance(row: EquivarianceRow) -> str:
    return "–" if row.tolerance is None else f"{row.tolerance:.0e}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(row: EquivarianceRow, title: str) -> str:
    """Format one error, or the reason why there is none."""
    error = row.errors.get(title)
    if error is None:
        return "–"
    if isinstance(error, str):
        return error
    return f"{error:.1e}"


@contextmanager
def _matrix_products(column: Precision) -> Iterator[None]:
    """Set the precision of matrix products within the context."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = column.tf32
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=column.autocast):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
