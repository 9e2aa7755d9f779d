"""Training on a store that is larger than the memory of the process: graphs are written and read piece by piece."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc of Linux")
def test_memory_does_not_grow_with_the_store(structures_dir, tmp_path):
    command = [sys.executable, "-m", "tests.train.large_store", structures_dir / "6ny1.bcif", tmp_path, "500"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["stored"] > 200e6
    assert measured["grown"] < 120e6  # 80 MB for 150 MB as for 730 MB: one shard, its copy, and one batch
