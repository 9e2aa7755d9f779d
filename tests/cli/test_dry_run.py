"""``protgraph train --dry-run`` and ``--batch-residues auto``."""

from __future__ import annotations

import json

import pytest

from protgraph.cli import dry_run
from protgraph.errors import OptionError

ENTRIES = ("1crn", "2erl", "1d3z", "1bo0", "1fas", "1hf9", "1ubq", "1a8o", "1y0m", "1orc", "5pti")


@pytest.fixture
def train(structures_dir, tmp_path, monkeypatch) -> list[str]:
    """Arguments of a run on eleven structures, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    files = [text for entry in ENTRIES for text in ("--data", str(structures_dir / f"{entry}.bcif"))]
    return ["train", "sequence_mlp", *files, "--task", "secondary_structure", "--device", "cpu"]


@pytest.mark.slow
def test_a_dry_run_prints_a_row_per_budget_and_writes_nothing(run, train, tmp_path):
    result = run(*train, "--dry-run", "--batch-residues", 4096)
    assert result.code == 0 and not list(tmp_path.iterdir())
    rows = [line.split() for line in result.out.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows] == ["1024", "2048", "4096"]
    marked = next(row for row in rows if row[-1] == "*")
    assert marked[0] == "4096" and float(marked[3]) > 100 and float(marked[4]) > 0


def test_auto_trains_with_the_printed_number(run, train, tmp_path):
    result = run(*train, "--batch-residues", "auto", "--memory-limit", "64GiB", "--epochs", 1, "--log", "none")
    assert result.code == 0 and "--batch-residues 256:" in result.err
    header = (tmp_path / "sequence_mlp-secondary_structure.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    assert '"batch_residues": 256' in json.dumps(json.loads(header[8 : 8 + size])).replace("\\", "")


@pytest.mark.parametrize(
    "text, mebibytes", [("4GiB", 4096), ("512 MiB", 512), ("0.5gib", 512), ("1GB", 1e9 / 2**20), ("1048576B", 1)]
)
def test_sizes_have_units(text, mebibytes):
    assert dry_run._mebibytes(text) == pytest.approx(mebibytes)


@pytest.mark.parametrize("text", ["4", "GiB", "-1GiB", "0GiB", "4 apples", ""])
def test_other_sizes_are_refused(text):
    with pytest.raises(OptionError, match="4GiB"):
        dry_run._mebibytes(text)


@pytest.mark.parametrize(
    "options, named",
    [
        (("--batch-residues", "many"), "'many'"),
        (("--batch-residues", "0"), "'0'"),
        (("--batch-residues", "auto", "--devices", 2), "--devices"),
        (("--batch-residues", "auto", "--resume"), "--resume"),
        (("--dry-run", "--cv", "5"), "--cv"),
        (("--memory-limit", "4GiB"), "--memory-limit 4GiB"),
        (("--batch-residues", "auto", "--memory-limit", "4"), "'4'"),
        (("--batch-residues", "auto", "--memory-limit", "1MiB"), "'sequence_mlp'"),
    ],
)
def test_options_that_do_not_fit_are_refused(run, train, tmp_path, options, named):
    result = run(*train, *options)
    assert result.code == 2 and named in result.err
    assert not list(tmp_path.iterdir())
