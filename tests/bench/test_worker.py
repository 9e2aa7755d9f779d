"""Training jobs on real proteins: one epoch of small models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protgraph.bench.rows import BenchRow, read_rows
from protgraph.bench.run import run_bench
from protgraph.bench.spec import BenchSpec


@pytest.fixture
def spec(tmp_path: Path) -> BenchSpec:
    return BenchSpec(
        name="try",
        dataset="pdb_core",
        tasks=("ligand_binding",),
        models=("majority", "gcn"),
        baselines=("majority",),
        seeds=(3,),
        fit={"epochs": 1},
        jobs=1,
        out=tmp_path / "runs",
    )


def numbers(row: BenchRow) -> BenchRow:
    """Return the row without time and memory, which vary between runs."""
    return replace(row, seconds=0.0, residues_per_second=0.0, peak_memory_mib=0.0)


@pytest.mark.slow
def test_rows_are_complete_and_repeat_exactly(spec: BenchSpec) -> None:
    rows = run_bench(spec)
    assert [row.error for row in rows] == ["", ""]
    assert list(read_rows(spec.folder / "rows.jsonl").values()) == rows
    for row in rows:
        assert set(row.metrics) == {"val", "test"}
        assert row.metrics["test"].keys() == row.modes.keys() == {"auprc", "auroc", "mcc"}
        assert (row.epochs, row.best_epoch, len(row.history)) == (1, 1, 1)
        assert row.history[0]["auprc"] == row.metrics["val"]["auprc"]
        assert row.parameters > 0 and row.residues_per_second > 0 and row.seconds > 0
        assert 100 < row.peak_memory_mib < 4000
    assert rows[0].metrics["test"]["auroc"] == 0.5  # a constant prediction
    again = run_bench(spec, overwrite=True)
    assert list(map(numbers, again)) == list(map(numbers, rows))
