"""All substitutions of a structure with ProteinMPNN: changed states only, a pass per residue, and the whole command."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.synthetic_inputs import largest_difference, threads
from benchmarks.timing import Measurement, interleave
from protgraph import datasets
from protgraph.design.mutation import LogOddsScorer, scan_mutations
from protgraph.model import pretrained
from protgraph.nn.decoder import Decoder
from protgraph.structure import clean, load_structure

__all__ = ["measure"]

ENTRY = "7rin"  # of pdb_core: 298 residues
MODEL = "proteinmpnn.v_48_020"
STATES, DEGREE, WIDTH = 75, 48, 128  # states that a mask changes, neighbors, channels
ROUNDS = 3
PROCESS = True  # also the command, process start included
LOCAL, PASSES, COMMAND = "changed states", "a pass per residue", "protgraph scan, process start included"


def measure(*, seconds: float = 5.0) -> list[Measurement]:
    """Measure a scan of L × 20 substitutions, with log-odds given all other residues."""
    (file,) = {e.path for e in datasets.create("pdb_core").examples("b_factor") if e.path.stem == ENTRY}
    residues, scorer = clean(load_structure(file)), LogOddsScorer(pretrained(MODEL))
    decoder = scorer.model.decoder

    def local() -> tuple[torch.Tensor]:
        return (torch.from_numpy(scan_mutations(scorer, residues).scores),)

    def passes() -> tuple[torch.Tensor]:
        decoder.masked_rows = lambda *arguments: Decoder.masked_rows(decoder, *arguments)
        try:
            return local()
        finally:
            del decoder.masked_rows

    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], tuple[torch.Tensor]]] = {LOCAL: local, PASSES: passes}
        if PROCESS:
            ways[COMMAND] = lambda: (torch.from_numpy(_command(file, Path(folder, "scan.csv"))),)
        outcomes = [way() for way in ways.values()]
        rows = interleave(ways, reference=LOCAL, seconds=seconds, rounds=ROUNDS, warm=True)
    return [
        Measurement(
            title=f"{len(residues)} residues × 20 substitutions, {MODEL}, {threads()}",
            reference=LOCAL,
            rows=rows,
            lower_bound=f"{len(residues) * STATES * DEGREE * WIDTH**2 / 1e9:.1f} G multiply-adds: messages of about "
            f"{STATES} states per residue",
            error=max(largest_difference(outcomes[0], other) for other in outcomes[1:]),
        )
    ]


def _command(file: Path, out: Path) -> np.ndarray:
    """Run the command on the CPU and return its scores, ``(L, 20)``."""
    command = [sys.executable, "-m", "protgraph", "scan", str(file), "--model", MODEL, "-o", str(out), "--overwrite"]
    subprocess.run([*command, "--device", "cpu"], capture_output=True, check=True)
    with open(out, newline="", encoding="utf-8") as table:
        scores = [float(row["unfavorable_log_odds"]) for row in csv.DictReader(table)]
    return np.array(scores).reshape(-1, 20)
