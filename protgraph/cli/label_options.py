"""Options of commands that read a label table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["LabelColumns", "Kind", "LabelFile", "LeaveOutAbsent", "UnknownTexts"]

LabelFile = Annotated[
    Path | None, typer.Option(help="Table of labels or splits: CSV, TSV, .xlsx (FILE.xlsx#SHEET) or Parquet.")
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(help="Label column of the table; repeat for several numeric ones that form one task."),
]
Kind = Annotated[
    str | None,
    typer.Option(help="Kind of labels: classification, multilabel (binary) or regression; inferred if omitted."),
]
UnknownTexts = Annotated[
    list[str] | None, typer.Option(help="Text that means an unknown label, besides blank cells; repeat for more.")
]
LeaveOutAbsent = Annotated[
    bool,
    typer.Option(
        "--leave-out-absent",
        help="Leave out labels of residues that are absent from a structure, e.g. unresolved. Labels of the whole "
        "sequence need no option.",
    ),
]
