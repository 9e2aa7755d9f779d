"""Results of the pipeline: graphs with their residues, apart from the failure records, and the manifest of a run."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.errors import list_first
from protgraph.failure import Failure
from protgraph.file_io import atomic_write
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.wording import count_noun

__all__ = [
    "COLUMNS",
    "GraphResult",
    "count_notes",
    "manifest_row",
    "model_notes",
    "reader_notes",
    "successes",
    "write_failures",
    "write_manifest",
    "write_manifest_rows",
]

_LISTED, _MESSAGES = 3, 10


@dataclass(frozen=True, eq=False)
class GraphResult:
    """One protein after the pipeline.

    Parameters
    ----------
    source : str
        The file as given; for a FASTA record, followed by "#" and its name.
    protein : str
        Name of the protein.
    residues : Residues
        All residues, nothing hidden.
    graph : ProteinGraph
        Graph that the step made.
    sha256 : str
        Hexadecimal SHA-256 of the file; "" if the residues came from a store or a cache.
    seconds : float
        Time from opening the file to the graph.
    notes : tuple of str
        Messages of the step for the user.
    """

    source: str
    protein: str
    residues: Residues
    graph: ProteinGraph
    sha256: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def loss(self) -> Mapping[str, object]:
        """Loss report of the residues as plain data; see :meth:`protgraph.structure.LossReport.to_dict`."""
        return self.residues.report.to_dict()

    @property
    def chains(self) -> str:
        """Chain ids, joined by commas."""
        return ",".join(self.residues.chain_names)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with tensors as arrays: processes copy them instead of sharing file descriptors."""
        arrays = dict(self.graph.items())
        tensors = [key for key, value in arrays.items() if isinstance(value, Tensor)]
        for key in tensors:
            arrays[key] = arrays[key].numpy()
        return vars(self) | {"graph": (arrays, tensors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays, tensors = state["graph"]
        graph = ProteinGraph()
        set_attributes(graph, arrays | {key: torch.from_numpy(arrays[key]) for key in tensors})
        vars(self).update(state | {"graph": graph})


def successes(
    results: Iterable[GraphResult | Failure], failures: list[Failure], notes: list[str] | None = None
) -> Iterator[GraphResult]:
    """Yield the results that have a graph, append the others to ``failures``, and all messages to ``notes``."""
    for result in results:
        if isinstance(result, Failure):
            failures.append(result)
        else:
            if notes is not None:
                notes += result.notes
            yield result


def reader_notes(reports: Mapping[str, LossReport]) -> tuple[str, ...]:
    """Return a message that names the files in which the reader changed residues; none if there are no such files.

    Parameters
    ----------
    reports : mapping of str to LossReport
        Report of each file.

    Examples
    --------
    >>> reader_notes({"a.pdb": LossReport(repeated_chains={"A-2": 7}), "b.pdb": LossReport()})
    ('1 file changed by the reader: a.pdb (7 residues of a repeated chain id renamed (A-2 7))',)
    """
    changes = {file: report.changes() for file, report in reports.items()}
    texts = [f"{file} ({'; '.join(lines)})" for file, lines in changes.items() if lines]
    return (f"{count_noun(len(texts), 'file')} changed by the reader: {list_first(texts, _LISTED)}",) if texts else ()


def model_notes(reports: Mapping[str, LossReport], number: int | None = None) -> tuple[str, ...]:
    """Return a message that names the files of which one of several models is read; none if there are no such files.

    Parameters
    ----------
    reports : mapping of str to LossReport
        Report of each file.
    number : int, optional
        Place of the model, from 1, if it is known.

    Examples
    --------
    >>> model_notes({"a.pdb": LossReport(models=37), "b.pdb": LossReport()}, 1)
    ('model 1 of 38 of a.pdb is read; --model-number (model_number=) selects another',)
    """
    which = "one model" if number is None else f"model {number}"
    texts = [f"{which} of {report.models + 1} of {file}" for file, report in reports.items() if report.models]
    selects = "is read; --model-number (model_number=) selects another"
    return (f"{list_first(texts, _LISTED)} {selects}",) if texts else ()


def count_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return each distinct message once, with its number of graphs; after ten messages, how many others there are.

    Examples
    --------
    >>> count_notes(["recomputed", "recomputed"])
    ('recomputed (2 graphs)',)
    """
    counted = [f"{note} ({count_noun(n, 'graph')})" for note, n in Counter(notes).items()]
    others = len(counted) - _MESSAGES
    return (*counted[:_MESSAGES], *([f"and {count_noun(others, 'other message')}"] if others > 0 else []))


# --- manifest: one row per protein -----------------------------------------------------------------------------------


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
