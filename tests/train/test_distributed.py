"""Two processes with gloo train like one process with the same global batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(structures_dir, out, options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tests.train.runs", out, structures_dir, json.dumps(options)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def history(structures_dir, out, options) -> dict:
    done = run(structures_dir, out, options)
    assert done.returncode == 0, done.stderr
    return json.loads(out.with_suffix(".json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "strategy"),
    [("helix", "ddp"), ("buried", "ddp"), ("size", "ddp"), ("inverse_folding", "ddp"), ("helix", "fsdp")],
)
def test_two_processes_train_like_one(task, strategy, structures_dir, tmp_path):
    # Some global batches have one protein: the second process has no share of them.
    options = {"config": {"epochs": 4}, "task": task}
    one = history(structures_dir, tmp_path / "one.safetensors", options)
    two = history(structures_dir, tmp_path / "two.safetensors", options | {"devices": 2, "strategy": strategy})
    assert len(one["history"]) == len(two["history"]) == 4
    for row, expected in zip(two["history"], one["history"], strict=True):
        assert row == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert two["metrics"]["test"] == pytest.approx(one["metrics"]["test"], rel=1e-6, abs=1e-6)


def batches(folder: Path) -> list[list[str]]:
    """Return the proteins of each step, of all processes together."""
    steps: dict[int, list[str]] = {}
    for path in sorted(folder.glob("batches-*.txt")):
        for step, names in map(json.loads, path.read_text().splitlines()):
            steps.setdefault(step, []).extend(names)
    return [sorted(steps[step]) for step in sorted(steps)]


@pytest.fixture(scope="module")
def whole(structures_dir, tmp_path_factory):
    """Uninterrupted run of one process, and its batches."""
    folder = tmp_path_factory.mktemp("whole")
    options = {"config": {"epochs": 4, "batch_residues": 130}, "record": True}
    return history(structures_dir, folder / "one.safetensors", options), batches(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "step"),
    [("ddp", "one", 11), ("one", "fsdp", 9)],  # within an epoch and between two: they have 5, 4, 5 and 5 batches
)
def test_a_run_is_resumed_at_another_world_size(before, after, step, whole, structures_dir, tmp_path):
    expected, order = whole
    devices = {"one": {}} | {name: {"devices": 2, "strategy": name} for name in ("ddp", "fsdp")}
    options = {"config": {"epochs": 4, "batch_residues": 130}, "run_dir": str(tmp_path / "run"), "record": True}
    stopped = options | {"state_interval": 0.0, "stop": step}
    assert run(structures_dir, tmp_path / "m.safetensors", stopped | devices[before]).returncode != 0
    assert len(batches(tmp_path)) == step
    assert (tmp_path / "run" / "checkpoints" / "state.ckpt").is_file()
    resumed = history(structures_dir, tmp_path / "m.safetensors", options | {"resume": True} | devices[after])
    assert batches(tmp_path) == order
    for row, reference in zip(resumed["history"], expected["history"], strict=True):
        assert row == pytest.approx(reference, rel=1e-6, abs=1e-6)
    assert resumed["metrics"]["test"] == pytest.approx(expected["metrics"]["test"], rel=1e-6, abs=1e-6)
    assert any("interrupted with" in note for note in resumed["notes"])
