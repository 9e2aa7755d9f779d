"""Two processes with gloo train like one process with the same global batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def history(structures_dir, out, options) -> dict:
    command = [sys.executable, "-m", "tests.train.runs", out, structures_dir, json.dumps(options)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(out.with_suffix(".json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["helix", "buried", "size", "inverse_folding"])
def test_two_processes_train_like_one(task, structures_dir, tmp_path):
    # Some global batches have one protein: the second process has no share of them.
    options = {"config": {"epochs": 4}, "task": task}
    one = history(structures_dir, tmp_path / "one.safetensors", options)
    two = history(structures_dir, tmp_path / "two.safetensors", options | {"devices": 2, "strategy": "ddp"})
    assert len(one["history"]) == len(two["history"]) == 4
    for row, expected in zip(two["history"], one["history"], strict=True):
        assert row == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert two["metrics"]["test"] == pytest.approx(one["metrics"]["test"], rel=1e-6, abs=1e-6)
