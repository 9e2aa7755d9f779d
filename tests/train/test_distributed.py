"""Two processes with gloo train like one process with the same global batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.train.runs import run

ROOT = Path(__file__).parents[2]
EQUAL = {"rel": 1e-6, "abs": 1e-6}
STRATEGIES = {name: {"devices": 2, "strategy": name} for name in ("ddp", "fsdp")}
TRAINED = [("helix", "ddp"), ("buried", "ddp"), ("size", "ddp"), ("inverse_folding", "ddp"), ("helix", "fsdp")]
# Some global batches have one protein: the second process has no share of them.
PLAIN = {"config": {"epochs": 3}}
# Some parts are frozen, only low-rank terms are trained, or the layers learn from other tasks, too.
PARTLY = {
    "frozen": {"config": {"epochs": 2, "freeze": ["layers.[01]"]}},
    "lora": {"config": {"epochs": 2, "lora": {"layers": 2}}},
    "auxiliary": {"config": {"epochs": 2, "auxiliary": {"buried": 0.5, "size": 1.0}}},
}
ADAPTED = [("frozen", "ddp"), ("frozen", "fsdp"), ("lora", "ddp"), ("auxiliary", "ddp")]
# Stopped within an epoch and between two: they have 5, 4, 5 and 5 batches.
RECORDED = {"config": {"epochs": 4, "batch_residues": 130}, "record": True}
RESUMED = [("ddp", "one", 11), ("one", "fsdp", 9)]


class Runs:
    """Runs of one process, in this process, and runs of two, one after another in the same two processes."""

    def __init__(self, folder: Path, structures: Path) -> None:
        self.folder, self.structures = folder, structures

    def out(self, name: str) -> Path:
        path = self.folder / name / "m.safetensors"
        path.parent.mkdir(exist_ok=True)
        return path

    def one(self, name: str, options: dict) -> dict:
        """Train in this process with one thread, and return the numbers."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            run(self.out(name), self.structures, options)
        finally:
            torch.set_num_threads(threads)
        return self.numbers(name)

    def two(self, runs: dict[str, dict]) -> subprocess.CompletedProcess:
        """Train in two new processes."""
        given = json.dumps([(str(self.out(name)), options) for name, options in runs.items()])
        command = [sys.executable, "-m", "tests.train.runs", str(self.structures), given]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)

    def numbers(self, name: str) -> dict:
        return json.loads(self.out(name).with_suffix(".json").read_text())

    def resumable(self, before: str, after: str, step: int) -> dict:
        """Return the options of a run that is stopped at a step."""
        folder = str(self.folder / f"{before}-{after}" / "run")
        return RECORDED | {"run_dir": folder, "state_interval": 0.0, "stop": step}

    def batches(self, name: str) -> list[list[str]]:
        """Return the proteins of each step, of all processes together."""
        steps: dict[int, list[str]] = {}
        for path in sorted((self.folder / name).glob("batches-*.txt")):
            for step, names in map(json.loads, path.read_text().splitlines()):
                steps.setdefault(step, []).extend(names)
        return [sorted(steps[step]) for step in sorted(steps)]


@pytest.fixture(scope="module")
def runs(structures_dir, tmp_path_factory) -> Runs:
    """Run everything that needs two processes; the last run is stopped by an error."""
    runs = Runs(tmp_path_factory.mktemp("runs"), structures_dir)
    with pytest.raises(RuntimeError, match="stop"):
        runs.one("one-fsdp", runs.resumable("one", "fsdp", 9))
    assert len(runs.batches("one-fsdp")) == 9
    trained = {f"{task}-{strategy}": PLAIN | {"task": task} | STRATEGIES[strategy] for task, strategy in TRAINED}
    trained |= {f"{parts}-{strategy}": PARTLY[parts] | STRATEGIES[strategy] for parts, strategy in ADAPTED}
    resumed = RECORDED | {"run_dir": str(runs.folder / "one-fsdp" / "run"), "resume": True} | STRATEGIES["fsdp"]
    stopped = runs.resumable("ddp", "one", 11) | STRATEGIES["ddp"]
    done = runs.two({**trained, "one-fsdp": resumed, "ddp-one": stopped})
    assert done.returncode != 0 and "RuntimeError: stop" in done.stderr, done.stderr
    return runs


@pytest.mark.slow
@pytest.mark.parametrize(("task", "strategy"), TRAINED)
def test_two_processes_train_like_one(task, strategy, runs):
    two, one = runs.numbers(f"{task}-{strategy}"), runs.one(f"{task}-{strategy}-one", PLAIN | {"task": task})
    assert len(one["history"]) == len(two["history"]) == 3
    for row, expected in zip(two["history"], one["history"], strict=True):
        assert row == pytest.approx(expected, **EQUAL)
    assert two["metrics"]["test"] == pytest.approx(one["metrics"]["test"], **EQUAL)


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "strategy"), ADAPTED)
def test_two_processes_train_the_same_parts_as_one(parts, strategy, runs):
    two, one = runs.numbers(f"{parts}-{strategy}"), runs.one(f"{parts}-{strategy}-one", PARTLY[parts])
    for row, expected in zip(two["history"], one["history"], strict=True):
        assert row == pytest.approx(expected, **EQUAL)
    assert two["metrics"]["test"] == pytest.approx(one["metrics"]["test"], **EQUAL)


@pytest.fixture(scope="module")
def whole(runs) -> dict:
    """Uninterrupted run of one process."""
    return runs.one("whole", RECORDED)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "step"), RESUMED)
def test_a_run_is_resumed_at_another_world_size(before, after, step, whole, runs):
    name = f"{before}-{after}"
    if after == "one":
        assert len(runs.batches(name)) == step
        runs.one(name, RECORDED | {"run_dir": str(runs.folder / name / "run"), "resume": True})
    resumed = runs.numbers(name)
    assert runs.batches(name) == runs.batches("whole")
    for row, reference in zip(resumed["history"], whole["history"], strict=True):
        assert row == pytest.approx(reference, **EQUAL)
    assert resumed["metrics"]["test"] == pytest.approx(whole["metrics"]["test"], **EQUAL)
    assert any("interrupted with" in note for note in resumed["notes"])
