"""Synthetic records of a large set: graphs of a few residues, logged executions, and processes that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from protgraph.data.cache_key import digest
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.failure import Failure
from protgraph.featurize.result import GraphResult
from protgraph.prepare import InputRecord, RecordWork
from protgraph.structure.io import FastaRecord
from protgraph.structure.residues.residues import Residues

__all__ = ["SyntheticWork", "label_of", "synthetic_records"]

_SEQUENCE = "MK"
_EVERY = 1009  # one record of so many cannot be read


def label_of(number: int) -> str:
    """Return the name of a record, as of an entry in a database."""
    return f"synthetic:AF-{number:09d}-F1"


def synthetic_records(count: int) -> Iterator[InputRecord]:
    """Yield records with lengths between 100 and 500 residues, as expected from their files."""
    for number in range(count):
        yield InputRecord(label_of(number), 100.0 + (number * 7919) % 401, number)


@dataclass(frozen=True)
class SyntheticWork(RecordWork):
    """Make a graph of two residues in place of reading a file, which leaves the time of scheduling and writing.

    Parameters
    ----------
    folder : Path
        Place of the log of executions, and of a mark for each death.
    deadly : frozenset of int
        Records at which the process is killed, when they are processed for the first time.
    """

    folder: Path
    deadly: frozenset[int] = frozenset()
    code: str | None = "synthetic records 1"

    def content(self, record: InputRecord) -> str:
        """Return the digest of the number of a record."""
        return digest(record.data)

    def results(self, record: InputRecord) -> tuple[str, Sequence[GraphResult | Failure]]:
        """Return a graph, or a failure for one of 1009 records; log the number of the record."""
        number = record.data
        mark = self.folder / f"died_{number}"
        if number in self.deadly and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(_log(self.folder), number.to_bytes(8, "little"))
        content = self.content(record)
        if number % _EVERY == 0:
            return content, [Failure(record.label, "", "StructureFileError", "a synthetic failure", content)]
        residues, graph = _template()
        graph = copy(graph)
        graph.name = record.label
        return content, [GraphResult(record.label, record.label, replace(residues, name=record.label), graph, content)]


@cache
def _log(folder: Path) -> int:
    """Return the log, opened so that records of several processes do not overwrite each other."""
    return os.open(folder / "executions", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


@cache
def _template() -> tuple[Residues, ProteinGraph]:
    residues = FastaRecord("synthetic", "synthetic", 1, 1, ((2, _SEQUENCE),)).residues()
    size = len(residues)
    graph = ProteinGraph(pos=torch.zeros(size, 3), aatype=torch.from_numpy(residues.aatype.copy()), name="")
    return residues, graph
