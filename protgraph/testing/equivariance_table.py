"""How exact every component is: the largest equivariance error for each type, on the CPU and on a GPU, as a table."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata

import torch

from protgraph.errors import ProtgraphError
from protgraph.testing.rigid_transforms import rotations
from protgraph.testing.subject import Subject
from protgraph.testing.trial import ConformityError, Trial

__all__ = ["COLUMNS", "Column", "markdown", "measure"]


@dataclass(frozen=True)
class Column:
    """One way to compute: where, in which type, and with what matrix products."""

    title: str
    device: str
    dtype: torch.dtype
    tf32: bool = False
    autocast: bool = False


#: bf16 is automatic mixed precision: coordinates 100 Å off center have no half digit in bfloat16 itself.
COLUMNS = (
    Column("float64, CPU", "cpu", torch.float64),
    Column("float32, CPU", "cpu", torch.float32),
    Column("float64, CUDA", "cuda", torch.float64),
    Column("float32, CUDA", "cuda", torch.float32),
    Column("TF32, CUDA", "cuda", torch.float32, tf32=True),
    Column("bf16, CUDA", "cuda", torch.float32, autocast=True),
)


def measure(subject: Subject) -> dict[str, float | str]:
    """The worst error over a component's cases, by column title; a word where there is none.

    Each is ``max |Q⁻¹ f(Q x + t) − f(x)| / max |f(x)|`` over 32 rotations with translations of 100 to 300 Å, with
    f(x) from float64 on the CPU.
    """
    row: dict[str, float | str] = {}
    for column in columns():
        if column.device == "cuda" and subject.kind == "featurizer":
            continue
        trial = Trial(subject, column.device, column.dtype)
        try:
            with _products(column), trial.naming(column.title):
                row[column.title] = max(trial.motion_error(case, rotations()) or 0.0 for case in trial.cases)
        except (ConformityError, ProtgraphError) as e:
            row[column.title] = f"fails ({str(e).splitlines()[0]})"
    return row


def columns() -> tuple[Column, ...]:
    """Those that this machine has."""
    return tuple(c for c in COLUMNS if c.device == "cpu" or torch.cuda.is_available())


def markdown(rows: Mapping[Subject, Mapping[str, float | str]], *, command: str) -> str:
    """The table, with what it says, the machine, the versions and the command that made it."""
    titles = [c.title for c in columns()]
    lines = ["# Equivariance errors", "", _explained(command), ""]
    lines += _row(["component", *titles, "float32 tolerance"]), _row(["---", *["---:"] * (len(titles) + 1)])
    for subject, row in rows.items():
        lines.append(_row([str(subject), *(_cell(row.get(title)) for title in titles), _tolerance(subject)]))
    return "\n".join(lines) + "\n"


def _explained(command: str) -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "torch-geometric", "e3nn"))
    machine = platform.processor() or platform.machine()
    if torch.cuda.is_available():
        machine += f", {torch.cuda.get_device_name(0)} (CUDA {torch.version.cuda})"
    return (
        "Largest relative difference between what a component says of a moved protein, moved back, and what it says\n"
        "of the unmoved one in float64: over 32 Haar-random rotations with translations of 100 to 300 Å, and over all\n"
        "wirings of the component. Layers and heads are given exact inputs, rounded once; models, coordinates.\n"
        f"\nMade by `{command}` on {machine}; Python {platform.python_version()}, {versions}."
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.1e}"


def _tolerance(subject: Subject) -> str:
    try:
        return f"{subject.conformity.tolerance:.0e}"
    except ProtgraphError:
        return "–"


@contextmanager
def _products(column: Column) -> Iterator[None]:
    """How matrices are multiplied, for a while."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = column.tf32
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=column.autocast):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
