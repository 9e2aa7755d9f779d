"""Simulation of a large set with killed runs and processes, its checks, and the plan."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.large_set_page import PAGE, LargeSet, stages_table, write_page
from benchmarks.large_set_plan import Stage, plan_table
from benchmarks.simulate_large_set import _check_contents, _check_executions, simulate
from benchmarks.synthetic_records import SyntheticWork, synthetic_records
from protgraph.errors import DatasetError
from protgraph.prepare import InputRecord, prepare_records


@pytest.mark.slow
def test_interrupted_runs_prepare_each_record_once(tmp_path):
    found = simulate(tmp_path, records=6000, restarts=1, deaths=2, shard_residues=60_000)
    assert found.records == 6000 and found.failures == 6  # records 0, 1009, 2018, …
    assert 15 <= found.shards <= 60 and found.memory < 64
    assert 2 <= found.repeated_shards <= 4 and found.repeated_records > 0


def prepared(folder, records):
    return prepare_records(records, folder / "store", SyntheticWork(folder), jobs=0, shard_residues=30_000).store


def test_checks_find_lost_repeated_and_exchanged_records(tmp_path):
    records = list(synthetic_records(300))
    for number, wrong in enumerate((records[1:], [*records, InputRecord("other", 300, 0)], records[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(DatasetError, match="store"):
            _check_contents(prepared(folder, wrong), 300)
    shards = _check_contents(prepared(tmp_path, records), 300)
    assert _check_executions(tmp_path, shards, 0) == (0, 0)
    np.array([7, 8], "<i8").tofile(tmp_path / "executions")
    with pytest.raises(DatasetError, match="298 records"):
        _check_executions(tmp_path, shards, 9)
    np.r_[np.arange(300), 5, 299].astype("<i8").tofile(tmp_path / "executions")
    assert _check_executions(tmp_path, shards, 2) == (2, 2)
    with pytest.raises(DatasetError, match="2 shards"):
        _check_executions(tmp_path, shards, 1)


def test_plan_adds_up():
    stages = [Stage("tables", 1e-6, 0.0, 40.0), Stage("read", 0.0, 1e-5, 0.0, 100.0)]
    rows = plan_table(stages, records=10**6, residues=300, cores=100, price=0.5, shard_residues=10**6)
    assert rows[0][1:] == pytest.approx((1 / 3600, 1 / 3600, 0.04, 0.5 / 3600))
    assert rows[1][1:] == pytest.approx((3000 / 3600, 30 / 3600, 30.0, 1500 / 3600))
    assert rows[2][0].startswith("all, 300 shards") and rows[2][1:] == pytest.approx(np.add(rows[0][1:], rows[1][1:]))


STAGES = [
    Stage("foldcomp database", bytes_per_residue=16.5),
    Stage("grouping to shards", 1.2e-6),
    Stage("features", 0.0, 8e-6),
    Stage("writing shards", 0.0, 1.6e-6, 0.0, 808.0),
]


def test_the_page_is_written_between_its_markers_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- stages -->\nold\n<!-- end of stages -->\nafter\n")
    write_page({"stages": stages_table(STAGES, LargeSet(records=1000, cores=10))}, page)
    lines = page.read_text().splitlines()
    assert lines[:2] == ["before", "<!-- stages -->"] and lines[-2:] == ["<!-- end of stages -->", "after"]
    assert "old" not in lines and [line.split(" | ")[0] for line in lines[4:-2]] == [
        *(
            "| foldcomp database",
            "| grouping to shards (one core)",
            "| features",
            "| writing shards",
            "| all, 0 shards",
        ),
    ]
    with pytest.raises(ValueError, match="figures"):
        write_page({"figures": ""}, page)


def test_the_page_has_the_tables_of_its_own_rates():
    """Recompute hours, bytes and cost of the page from its rates; figures that are named again agree."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (text.index(f"<!-- {name} -->") for name in ("stages", "end of stages"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text[begin:end].splitlines()[3:]]
    stages = [
        Stage(
            row[0],
            *(number(cell) * 1e-6 for cell in row[1:3]),
            9e9 / 214e6 if "tables" in row[0] else 0.0,
            number(row[3]),
        )
        for row in rows[:-1]
    ]
    for row, (_, *values) in zip(rows, LargeSet().rows(stages), strict=True):
        for cell, value, digits in zip(row[4:], values, (1, 0.01, 10, 1), strict=True):
            assert number(cell) == pytest.approx(value, rel=0.06, abs=digits), row
    hours = number(rows[-1][5])
    assert f"| time with 1 000 cores | {hours:.1f} hours" in text


def number(cell: str) -> float:
    return float(cell.replace(" ", "") or 0)
