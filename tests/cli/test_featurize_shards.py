"""``protgraph featurize`` with shards and ``protgraph data verify``."""

from __future__ import annotations

import csv
import re

import pytest

from protgraph.data.store import GraphStore
from protgraph.data.store.store_description import shard_path

ENTRIES = ("1crn", "2erl", "1d3z", "1bo0", "1fas", "1hf9", "1ubq", "1a8o")


@pytest.fixture
def files(structures_dir, tmp_path):
    """List of eight structures, and one file that is none."""
    (tmp_path / "x.pdb").write_text("broken")
    paths = [*(structures_dir / f"{entry}.bcif" for entry in ENTRIES), tmp_path / "x.pdb"]
    (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in paths))
    return f"@{tmp_path / 'list.txt'}"


@pytest.mark.slow
def test_dry_run_verify_and_damage(run, files, tmp_path):
    options = ("featurize", files, "-f", "knn:k=8", "--jobs", 1, "--shard-residues", 150)
    before = sorted(tmp_path.iterdir())
    dry = run(*options, "--dry-run")
    assert dry.code == 0 and sorted(tmp_path.iterdir()) == before
    assert dry.out.splitlines()[0] == "9 files, 9 files measured, 1 of them not usable"
    lines = dict(line.split(maxsplit=1) for line in dry.out.splitlines()[1:])

    store = tmp_path / "store"
    real = run(*options, "-o", store)
    assert real.code == 1 and "1 of 9 failed" in real.err
    opened = GraphStore(store)
    assert int(lines["residues"]) == opened.num_residues and re.search(r"in (\d+) shard", lines["bytes"])
    assert int(re.search(r"in (\d+) shard", lines["bytes"])[1]) == len(opened.shards) > 1
    assert 0 < float(lines["hours"].split()[1]) < 0.1 and lines["hours"].endswith("with 1 job")
    with open(f"{store}.manifest.tsv") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    assert [row["status"] for row in rows] == ["done"] * 8 + ["failed"]

    assert run("data", "verify", store).code == 0
    again = run(*options, "-o", store)
    assert again.code == 1 and f"({len(opened.shards)} unchanged)" in again.out
    damaged = shard_path(store, opened.shards[1].key)
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    found = run("data", "verify", store)
    assert found.code == 1 and damaged.name in found.out + found.err
    mended = run(*options, "-o", store)
    assert f"({len(opened.shards) - 1} unchanged)" in mended.out and run("data", "verify", store).code == 0


@pytest.mark.parametrize("option", ["--jobs", "--shard-residues", "--sample"])
def test_numbers_below_one_are_refused_before_the_files_are_read(run, option, tmp_path):
    found = run("featurize", tmp_path / "missing", "-o", tmp_path / "store", option, 0)
    assert found.code == 2 and option in found.err and not (tmp_path / "store").exists()
