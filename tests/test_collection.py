"""Test that collecting the tests is deterministic: workers of pytest-xdist must collect the same list."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def collected(hash_seed: str) -> list[str]:
    """Return the ids of all tests, in order, collected in a fresh process."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_two_collections_seconds_apart_give_the_same_ids_in_the_same_order() -> None:
    first = collected("1")
    time.sleep(1.1)  # a time stamp in an id would have changed
    assert len(first) > 1000
    assert len(set(first)) == len(first)
    assert collected("2") == first
