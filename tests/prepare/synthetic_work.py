"""Records without files, for tests: sequences, some of which kill the process that works on them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.featurize.result import GraphResult
from protgraph.prepare import InputRecord
from protgraph.structure.io.fasta import FastaRecord

LENGTH = 20


@dataclass(frozen=True)
class SyntheticWork:
    """A graph of random points for each record, in place of a :class:`protgraph.prepare.RecordWork`.

    ``data`` of a record is "", "kill" (the process ends itself by SIGKILL each time), "kill once" (the first time), or
    "raise"; ``log`` is a folder that gets a file per processed record.
    """

    log: Path
    code: str | None = "1"
    seconds: float = 0.0

    def content(self, record: InputRecord) -> str:
        return record.label

    def results(self, record: InputRecord):
        mark = self.log / record.label
        is_first = not mark.exists()
        with mark.open("a") as file:
            file.write("x")
        if record.data == "kill" or (record.data == "kill once" and is_first):
            os.kill(os.getpid(), signal.SIGKILL)
        if record.data == "raise":
            raise ValueError(record.label)
        time.sleep(self.seconds)
        residues = FastaRecord("synthetic", record.label, 1, 1, ((2, "A" * LENGTH),)).residues()
        pos = torch.from_numpy(np.random.default_rng(len(record.label)).normal(size=(LENGTH, 3)).astype(np.float32))
        graph = ProteinGraph(pos=pos, name=record.label)
        return record.label, [GraphResult(record.label, record.label, residues, graph)]

    def times(self, label: str) -> int:
        """Return how often a record was processed."""
        return len((self.log / label).read_text())


def records(count: int, **data: str) -> list[InputRecord]:
    """Return records; ``r3="kill"`` sets the data of record 3."""
    return [InputRecord(f"r{n}", LENGTH, data.get(f"r{n}", "")) for n in range(count)]
