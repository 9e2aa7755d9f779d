"""Peak memory counts what a stretch of work took, and only that stretch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: in one that has done much, an allocation may find room that is resident already.
MEASURE = """
import numpy as np, torch
from protgraph.train.peak_memory import peak_memory, reset_peak_memory

cpu = torch.device("cpu")
reset_peak_memory(cpu)
before = peak_memory(cpu)
block = np.ones(200 * 2**20, dtype=np.uint8)
taken = peak_memory(cpu) - before
del block
kept = peak_memory(cpu) - before
reset_peak_memory(cpu)
print(taken, kept, peak_memory(cpu) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the peak")
def test_a_peak_is_seen_and_forgotten_on_reset():
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    taken, kept, after = map(float, done.stdout.split())
    assert taken == pytest.approx(200, abs=20)
    assert kept > 180
    assert after < 100
