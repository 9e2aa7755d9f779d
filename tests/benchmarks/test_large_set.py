"""Simulation of a large set with killed runs and processes, its checks, and the plan."""

from __future__ import annotations

import numpy as np
import pytest

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
