"""Manifest of a run: one row per protein, with its status, sizes, checksum, error and losses."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from protgraph.failure import Failure
from protgraph.featurize.result import GraphResult
from protgraph.file_io import atomic_write
from protgraph.structure.residues.loss_report import LossReport

__all__ = ["COLUMNS", "manifest_row", "write_failures", "write_manifest", "write_manifest_rows"]

COLUMNS = (
    *("source", "status", "protein", "residues", "edges", "seconds", "sha256"),
    *("error_type", "message", "left_out"),
)
"""Columns of every manifest; counts of the loss report follow in tables, the report itself in JSON."""


def write_manifest(path: str | Path, results: Iterable[GraphResult | Failure]) -> Path:
    """Write one row per result, as JSON, CSV or TSV by the suffix; the file is replaced atomically."""
    return write_manifest_rows(path, ((manifest_row(r), r.loss if isinstance(r, GraphResult) else {}) for r in results))


def write_manifest_rows(path: str | Path, rows: Iterable[tuple[dict[str, object], Mapping[str, object]]]) -> Path:
    """Write the manifest of rows, each with its loss report; see :func:`write_manifest`."""
    path, rows = Path(path), list(rows)
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".json":
            json.dump([row | {"loss": dict(loss)} for row, loss in rows], file, indent=1)
        else:
            counts = [_counts(loss) for _, loss in rows]
            names: dict[str, None] = {}
            for count in counts:
                names |= dict.fromkeys(count)
            table = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t", lineterminator="\n")
            table.writerow([*COLUMNS, *names])
            for (row, _), count in zip(rows, counts, strict=True):
                table.writerow([*row.values(), *(count.get(name, 0) for name in names)])
    return path


def write_failures(path: str | Path, failures: Iterable[Failure]) -> Path | None:
    """Write a CSV table of failures: source, protein, error_type, message, and what was measured.

    The columns sha256 and seconds are left out if no failure has them. Without failures, the file of an earlier run is
    removed, and the result is None.
    """
    path = Path(path)
    failures = list(failures)
    if not failures:
        path.unlink(missing_ok=True)
        return None
    columns = ["source", "protein", "error_type", "message"]
    if any(failure.sha256 for failure in failures):
        columns.append("sha256")
    if any(failure.seconds for failure in failures):
        columns.append("seconds")
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for failure in failures:
            table.writerow([getattr(failure, name) for name in columns])
    return path


def manifest_row(result: GraphResult | Failure) -> dict[str, object]:
    """Return the columns of one result by name."""
    measured = (round(result.seconds, 4), result.sha256)
    if isinstance(result, Failure):
        values = ("failed", result.protein, 0, 0, *measured, result.error_type, result.message, "")
    else:
        left_out = "; ".join(LossReport.from_dict(result.loss).lines())
        sizes = (len(result.residues), result.graph.num_edges)
        values = ("done", result.protein, *sizes, *measured, "", "", left_out)
    return dict(zip(COLUMNS, (result.source, *values), strict=True))


def _counts(loss: Mapping[str, Any]) -> dict[str, int]:
    """Return the loss report as one number per entry."""
    counts = {}
    for name, value in loss.items():
        if isinstance(value, dict):
            counts[name] = sum(value.values())
        else:
            counts[name] = len(value) if isinstance(value, list) else int(value)
    return counts
