"""A killed worker loses only its record; a run that was stopped or killed continues to the same bytes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from protgraph.featurize import FeaturePlan
from protgraph.prepare import prepare_records, prepare_store
from protgraph.registry.component import component
from tests.prepare.synthetic_work import LENGTH, SyntheticWork, records

pytestmark = pytest.mark.slow


def contents(store):
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def prepare(given, out, log, **options):
    log.mkdir()
    options = {"shard_residues": 4 * LENGTH, "jobs": 2} | options
    return prepare_records(given, out, SyntheticWork(log), **options)


def test_a_record_that_kills_its_process_once_loses_nothing(tmp_path):
    whole = prepare(records(20), tmp_path / "whole", tmp_path / "log", jobs=0)
    prepared = prepare(records(20, r7="kill once"), tmp_path / "s", tmp_path / "log2")
    assert prepared.total("failures") == 0 and prepared.shards == whole.shards
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")
    assert SyntheticWork(tmp_path / "log2").times("r7") > SyntheticWork(tmp_path / "log").times("r7") == 1


def test_a_record_that_always_kills_its_process_fails_and_is_tried_by_the_next_run(tmp_path):
    prepared = prepare(records(20, r5="kill"), tmp_path / "s", tmp_path / "log")
    assert {f.source: f.error_type for f in prepared.store.failures} == {"r5": "WorkerDiedError"}
    assert prepared.store.names == [f"r{n}" for n in range(20) if n != 5]
    again = prepare(records(20), tmp_path / "s", tmp_path / "log2", update=True, jobs=0)
    assert len(again.store) == 20 and len(again.shards) - again.reused == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory, structures_dir):
    folder = tmp_path_factory.mktemp("in")
    for path in sorted(structures_dir.iterdir())[:60]:
        shutil.copyfile(path, folder / path.name)
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    """Bytes of the store of a run that is not stopped, in one process."""
    out = folder.parent / "whole"
    prepare_store(folder, out, FeaturePlan(["sasa", component("knn", k=8)]), jobs=0, shard_residues=1000)
    return contents(out)


def command(folder, out, *more):
    options = ("-f", "sasa", "-f", "knn:k=8", "--shard-residues", 1000, "--jobs", 2, "-o", out, *more)
    return [sys.executable, "-m", "protgraph", "featurize", folder, *map(str, options)]


def shards_of(parts):
    return {path.name: path.stat().st_ino for path in parts.glob("shards/*.safetensors")}


def stop(args, parts, number, *, whole_group):
    """Start a command, send a signal when it has finished two more shards, and return its exit code and output."""
    log, least = parts.parent / "log.txt", len(shards_of(parts)) + 2
    with log.open("w") as file:
        process = subprocess.Popen(args, stdout=file, stderr=file, start_new_session=True)
    while process.poll() is None and len(shards_of(parts)) < least:
        time.sleep(0.005)
    assert process.poll() is None, log.read_text()
    (os.killpg if whole_group else os.kill)(process.pid, number)
    return process.wait(60), log.read_text()


def test_a_run_that_is_stopped_three_times_keeps_its_shards_and_continues_to_the_same_bytes(folder, whole, tmp_path):
    """By SIGKILL of the main process, Ctrl-C (to all processes) and SIGTERM; a worker of the last run is killed."""
    args, parts, log = command(folder, tmp_path / "s"), tmp_path / ".s.parts", tmp_path / "log.txt"
    kept = {}
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        code, text = stop(args, parts, number, whole_group=number == signal.SIGINT)
        assert code == (-number if number == signal.SIGKILL else 128 + number) and "Traceback" not in text, text
        assert not (tmp_path / "s").exists()
        found = shards_of(parts)
        assert kept.items() <= found.items() and len(found) >= len(kept) + 2
        kept = found
    with log.open("w") as file:
        process = subprocess.Popen(args, stdout=file, stderr=file)
    while process.poll() is None and len(shards_of(parts)) <= len(kept):
        time.sleep(0.005)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    assert children
    os.kill(int(children[0]), signal.SIGKILL)
    assert process.wait(250) == 0, log.read_text()
    unchanged = re.search(r"\((\d+) unchanged\)", log.read_text())
    assert int(unchanged[1]) >= len(kept)  # a worker may have finished one more
    assert kept.items() <= shards_of(tmp_path / "s").items() and not parts.exists()
    assert contents(tmp_path / "s") == whole
