"""One structure of 10⁵ residues, an mmCIF file, goes through ``protgraph predict`` in 4 GB."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.large_structures import write_large_structure
from protgraph import Target, build_model
from protgraph.checkpoint import Checkpoint, save_checkpoint

RESIDUES, LIMIT = 100_000, 4e9  # bytes

# The peak of the whole process, with libraries, reading and writing.
PREDICT = """
import json, sys, torch
from protgraph.cli.app import main
from protgraph.process_memory import peak_memory
try:
    main(["predict", *sys.argv[1:]])
except SystemExit as e:
    code = e.code or 0
print(json.dumps([code, peak_memory(torch.device("cpu"))]))
"""


@pytest.fixture(scope="module")
def large_file(tmp_path_factory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("large") / "large.cif"
    return path, write_large_structure(RESIDUES, path)


@pytest.mark.slow
@pytest.mark.parametrize("one_chain", [False, True], ids=["one graph", "a graph per chain"])
@pytest.mark.parametrize("model", ["gat"])
def test_a_structure_of_100_000_residues_is_predicted_in_4_gb(model, one_chain, large_file, tmp_path):
    path, written = large_file
    network = build_model(model, Target("states", "node", "classification", 3), seed=0)
    checkpoint = Checkpoint(network, "secondary_structure", one_chain=one_chain)
    saved, out = save_checkpoint(tmp_path / "m.safetensors", checkpoint), tmp_path / "out.csv"
    arguments = [str(saved), str(path), "-o", str(out), "--device", "cpu"]
    done = subprocess.run([sys.executable, "-c", PREDICT, *arguments], capture_output=True, text=True, check=True)
    code, peak = json.loads(done.stdout.splitlines()[-1])
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert code == 0 and 0.98 * written < len(rows) <= written
    assert len({row["chain"] for row in rows}) > 300
    print(model, one_chain, peak)
    assert peak * 2**20 < LIMIT, peak
