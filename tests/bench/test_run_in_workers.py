"""Worker processes of a benchmark: rows of all jobs, and failures that affect only their own row."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from protgraph.bench.rows import BenchJob, BenchRow, read_rows
from protgraph.bench.run import perform, run_bench, run_in_workers
from protgraph.bench.spec import BenchSpec

TRAIN = """
    import os, signal, sys
    from protgraph.bench.rows import BenchRow
    from protgraph.errors import OptionError

    started = 0

    def train(job):
        global started
        started += 1
        print("output that is not a row")
        if job.model == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if job.model == "exits":
            sys.exit(3)
        if job.model == "raises":
            raise ZeroDivisionError("by zero")
        if job.model == "typed":
            raise OptionError("no such option")
        metrics = {"test": {"pid": os.getpid(), "started": started, "threads": int(os.environ["OMP_NUM_THREADS"])}}
        return BenchRow(job.key, job.model, job.task, job.dataset, job.seed, metrics=metrics)
"""


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "bench_pool_train.py").write_text(textwrap.dedent(TRAIN))
    monkeypatch.syspath_prepend(tmp_path)
    return "bench_pool_train:train"


def jobs(*models: str) -> list[BenchJob]:
    return [BenchJob(model, "t", "d", seed) for seed, model in enumerate(models)]


def run(train: str, tmp_path: Path, *models: str, workers: int = 1) -> list[BenchRow]:
    return list(run_in_workers(jobs(*models), train, workers=workers, log=tmp_path / "workers.log"))


@pytest.mark.slow
def test_a_worker_process_runs_all_its_jobs_on_one_thread(train: str, tmp_path: Path) -> None:
    rows = run(train, tmp_path, "a", "b", "c")
    assert [row.model for row in rows] == ["a", "b", "c"]
    assert [row.metrics["test"]["started"] for row in rows] == [1, 2, 3]
    assert len({row.metrics["test"]["pid"] for row in rows}) == 1
    assert {row.metrics["test"]["threads"] for row in rows} == {1}
    assert "output that is not a row" in (tmp_path / "workers.log").read_text()


@pytest.mark.slow
def test_each_job_runs_once_on_several_workers(train: str, tmp_path: Path) -> None:
    rows = run(train, tmp_path, *"abcdef", workers=3)
    assert sorted(row.model for row in rows) == list("abcdef")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param("killed", "SIGKILL", marks=pytest.mark.slow),
        pytest.param("exits", "status 3", marks=pytest.mark.slow),
        pytest.param("raises", "ZeroDivisionError: by zero", marks=pytest.mark.slow),
        ("typed", "OptionError: no such option"),
    ],
)
def test_a_failure_affects_only_its_own_job(train: str, tmp_path: Path, model: str, message: str) -> None:
    rows = run(train, tmp_path, "a", model, "b")
    assert [bool(row.error) for row in rows] == [False, True, False]
    assert message in rows[1].error


@pytest.mark.slow
def test_a_missing_train_function_fails_every_job(tmp_path: Path) -> None:
    rows = run("missing_module:train", tmp_path, "a", "b")
    assert all("missing_module" in row.error for row in rows) and len(rows) == 2


@pytest.mark.slow
def test_closing_the_generator_ends_the_worker_process(train: str, tmp_path: Path) -> None:
    rows = run_in_workers(jobs(*"abc"), train, workers=1, log=tmp_path / "workers.log")
    pid = int(next(rows).metrics["test"]["pid"])
    rows.close()
    status = Path(f"/proc/{pid}/cmdline")
    assert not status.exists() or not status.read_bytes()


def test_perform_returns_the_row_of_the_function() -> None:
    job = jobs("a")[0]
    row = perform(job, lambda j: BenchRow(j.key, j.model, j.task, j.dataset, j.seed, parameters=7))
    assert (row.parameters, row.error) == (7, "")


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
