"""Peak memory counts what a stretch of work took, and only that stretch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from protgraph.train.memory import peak_memory, reset_peak_memory

CPU = torch.device("cpu")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the peak")
def test_a_peak_is_seen_and_forgotten_on_reset():
    reset_peak_memory(CPU)
    before = peak_memory(CPU)
    block = np.ones(200 * 2**20, dtype=np.uint8)
    assert block.sum() > 0
    assert peak_memory(CPU) - before == pytest.approx(200, abs=20)
    del block
    assert peak_memory(CPU) - before > 180
    reset_peak_memory(CPU)
    assert peak_memory(CPU) - before < 100
