"""Test the peak memory of a part of the work of a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# In a new process: in a used one, an allocation may reuse memory that is resident already.
MEASURE = """
import numpy as np, torch
from protgraph.process_memory import peak_memory, reset_peak_memory

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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the peak")
def test_peak_memory_counts_allocations_since_the_reset_only():
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    taken, kept, after = map(float, done.stdout.split())
    assert taken == pytest.approx(200, abs=20)
    assert kept > 180
    assert after < 100
