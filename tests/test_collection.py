"""Test that collecting the tests is deterministic: workers of pytest-xdist must collect the same list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import COLLECTED, one_cuda_item_per_module

ROOT = Path(__file__).resolve().parents[1]


def collected(hash_seed: str) -> list[str]:
    """Return the ids of all tests, in order, collected in a fresh process."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_another_collection_gives_the_same_ids_in_the_same_order(pytestconfig: pytest.Config) -> None:
    """The collection of this run was seconds before, so that a time stamp in an id would have changed."""
    found, other = pytestconfig.stash[COLLECTED], collected("1")
    assert len(other) > 1000
    assert len(set(other)) == len(other)
    on_cuda = {name for name, needs_cuda in found if needs_cuda}  # of them, one per module is left without a device
    here = [name for name, needs_cuda in found if not needs_cuda]
    if any("::" in argument for argument in pytestconfig.args):
        other = [name for name in other if name in here]
    files = {file_of(name) for name in here}
    there = [name for name in other if name not in on_cuda and file_of(name) in files]
    assert sorted(there, key=file_of) == sorted(here, key=file_of)


def file_of(name: str) -> str:
    return name.partition("::")[0]


def item(module: str, name: str, *, cuda: bool) -> SimpleNamespace:
    """Return what the selection reads of a pytest item; ``added`` holds the markers that it adds."""
    added = []
    marker = object() if cuda else None
    return SimpleNamespace(
        name=name, path=Path(module), get_closest_marker={"cuda": marker}.get, add_marker=added.append, added=added
    )


def test_one_item_per_module_is_skipped_for_all_of_its_cuda_tests() -> None:
    a = [item("a.py", f"a{i}", cuda=i != 1) for i in range(4)]
    b = [item("b.py", "b0", cuda=False), item("b.py", "b1", cuda=True)]
    kept, left_out = one_cuda_item_per_module([*a, *b])
    assert [x.name for x in kept] == ["a0", "a1", "b0", "b1"]
    assert [x.name for x in left_out] == ["a2", "a3"]
    assert [len(x.added) for x in kept] == [1, 0, 0, 1]
    assert "3 tests" in a[0].added[0].kwargs["reason"]
