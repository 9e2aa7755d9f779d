"""Benchmark runs: order of jobs, resuming, stale rows, failed rows and the report; components are registered here."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import protgraph
from protgraph import registry
from protgraph.bench.job_plan import plan_jobs
from protgraph.bench.report import write_report
from protgraph.bench.rows import BenchJob, BenchRow, read_rows
from protgraph.bench.run import run_bench
from protgraph.bench.spec import BenchSpec
from protgraph.data.cache_key import code_digest
from protgraph.data.datasets.card import DatasetCard, TaskCard
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, PluginLoadError, UnknownNameError
from protgraph.model.spec import ModelSpec

TRAIN = """
    from pathlib import Path
    from protgraph.bench.rows import BenchRow

    def train(job):
        log = Path(__file__).with_name("ran.txt")
        with log.open("a") as file:
            file.write(f"{job.model} {job.task} {job.seed}\\n")
        if job.model == "bad" and not Path(__file__).with_name("fixed").exists():
            raise ValueError("bad model")
        score = {"baseline": 0.4, "good": 0.8, "bad": 0.6}[job.model] + job.seed / 100
        history = [{"epoch": e, "accuracy": score * e / 3} for e in (1, 2, 3)]
        metrics = {"val": {"accuracy": score}, "test": {"accuracy": score - 0.01}}
        result = dict(monitor="accuracy", modes={"accuracy": "max"}, parameters=5, epochs=3, best_epoch=3)
        cost = dict(residues_per_second=1e4, seconds=1.0, peak_memory_mib=9.0)
        return BenchRow(job.key, job.model, job.task, job.dataset, job.seed, dict(job.config), metrics=metrics,
                   history=history, **result, **cost)
"""


TARGET = Target("label", "node", "classification", 2)


class Small(Dataset):
    version = "1"
    tasks_of_card = {name: TaskCard(TARGET, "", "", {}) for name in ("first", "second")}  # noqa: RUF012
    card = DatasetCard("small", "1", "", "", "", "", {}, tasks_of_card)

    def examples(self, task: str, split: str | None = None) -> list:
        return []

    def labels(self, task: str, example: object) -> None:
        return None


@dataclass
class RecordingCallback:
    started: list[tuple[int, int, int]] = field(default_factory=list)
    rows: list[BenchRow] = field(default_factory=list)
    stopped: int = 0

    def start(self, jobs: Sequence[BenchJob], finished: Sequence[BenchRow], workers: int) -> None:
        self.started.append((len(jobs), len(finished), workers))

    def add(self, row: BenchRow) -> None:
        self.rows.append(row)

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchSpec:
    """Three models, one of which fails, on two tasks and two seeds; ``train`` records its jobs in ran.txt."""
    (tmp_path / "bench_run_train.py").write_text(textwrap.dedent(TRAIN))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bench_run_train", raising=False)
    for kind in registry.registries.values():
        monkeypatch.setattr(kind, "_session", {})
    registry.datasets.register("small", Small)
    for model in ("baseline", "good", "bad"):
        registry.models.register(model, ModelSpec(model))
    return BenchSpec(
        name="try",
        dataset="small",
        tasks=("first", "second"),
        models=("baseline", "good", "bad"),
        baselines=("baseline",),
        seeds=(0, 1),
        out=tmp_path / "runs",
    )


def ran(tmp_path: Path) -> list[str]:
    log = tmp_path / "ran.txt"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


TRAIN_REF = "bench_run_train:train"


def test_the_first_seed_of_all_models_and_tasks_runs_first(spec: BenchSpec, tmp_path: Path) -> None:
    rows = run_bench(spec.replace(jobs=1), train=TRAIN_REF)
    order = ran(tmp_path)
    assert order[0] == "baseline first 0"
    assert all(line.endswith(" 0") for line in order[:6])
    assert len(rows) == len(order) == 12


def test_other_seeds_run_from_the_last_model_to_the_first(spec: BenchSpec, tmp_path: Path) -> None:
    run_bench(spec.replace(jobs=1), train=TRAIN_REF)
    assert ran(tmp_path)[-3:] == ["bad first 1", "good first 1", "baseline first 1"]


def test_a_failed_run_is_a_row_and_the_others_continue(spec: BenchSpec) -> None:
    rows = run_bench(spec, train=TRAIN_REF)
    assert {row.model for row in rows if row.error} == {"bad"}
    assert "ValueError: bad model" in next(row.error for row in rows if row.error)


def test_a_second_run_repeats_failed_jobs_only(spec: BenchSpec, tmp_path: Path) -> None:
    first = run_bench(spec, train=TRAIN_REF)
    ran(tmp_path)
    (tmp_path / "fixed").touch()
    callback = RecordingCallback()
    second = run_bench(spec, train=TRAIN_REF, callback=callback)
    assert {line.split()[0] for line in ran(tmp_path)} == {"bad"}
    assert callback.started[0][:2] == (4, 8)
    assert (len(callback.rows), callback.stopped) == (4, 1)
    assert [r for r in first if not r.error] == [r for r in second if r.model != "bad"]
    assert not any(row.error for row in second)
    run_bench(spec, train=TRAIN_REF)
    assert ran(tmp_path) == []


def test_a_stopped_run_is_resumed(spec: BenchSpec, tmp_path: Path) -> None:
    class Stop(RecordingCallback):
        def add(self, row: BenchRow) -> None:
            super().add(row)
            if len(self.rows) == 3:
                raise KeyboardInterrupt

    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        run_bench(spec.replace(models=("baseline", "good")), train=TRAIN_REF, callback=stop)
    assert stop.stopped == 1
    assert len(read_rows(spec.folder / "rows.jsonl")) == 3
    ran(tmp_path)
    run_bench(spec.replace(models=("baseline", "good")), train=TRAIN_REF)
    assert len(ran(tmp_path)) == 8 - 3


def test_a_specification_is_a_model_of_a_job(spec: BenchSpec) -> None:
    graph = ModelSpec("unregistered", layers=[{"name": "embed", "options": {"dim": 8}}])
    jobs, _ = plan_jobs(spec.replace(models=("baseline", graph)))
    assert {job.model: job.graph for job in jobs}["unregistered"] == graph.to_dict()
    wider = ModelSpec("unregistered", layers=[{"name": "embed", "options": {"dim": 9}}])
    changed, _ = plan_jobs(spec.replace(models=("baseline", wider)))
    kept = {job.key for job in jobs} & {job.key for job in changed}
    assert kept == {job.key for job in jobs if job.model == "baseline"}


def test_jobs_run_again_if_options_or_the_dataset_version_change(spec: BenchSpec, tmp_path: Path, monkeypatch) -> None:
    spec = spec.replace(models=("baseline", "good"))
    run_bench(spec, train=TRAIN_REF)
    ran(tmp_path)
    run_bench(spec.replace(fit_models={"good": {"epochs": 9}}), train=TRAIN_REF)
    assert {line.split()[0] for line in ran(tmp_path)} == {"good"}
    run_bench(spec, overwrite=True, train=TRAIN_REF)
    assert len(ran(tmp_path)) == 8
    monkeypatch.setattr(Small, "version", "2")
    run_bench(spec.replace(jobs=1), train=TRAIN_REF)
    assert len(ran(tmp_path)) == 8


def test_a_plugin_that_cannot_be_loaded_gives_failed_rows(spec: BenchSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    get = registry.models.get

    def broken(name: str) -> object:
        if name == "bad":
            raise PluginLoadError("cannot import bad")
        return get(name)

    monkeypatch.setattr(registry.models, "get", broken)
    rows = run_bench(spec, train=TRAIN_REF)
    assert {row.error for row in rows if row.error} == {"PluginLoadError: cannot import bad"}
    assert sum(not row.error for row in rows) == 8


def test_an_unknown_task_is_an_error_before_any_run(spec: BenchSpec, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="tasks: .*'third'"):
        run_bench(spec.replace(tasks=("first", "third")), train=TRAIN_REF)
    assert ran(tmp_path) == []


@pytest.mark.slow
def test_installed_components_run_in_worker_processes(spec: BenchSpec, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("protgraph.bench.job_plan._sources", lambda *_: {"layer x": "dist 1"})
    rows = run_bench(spec.replace(jobs=2), train=TRAIN_REF)
    assert len(ran(tmp_path)) == 12
    assert sum(not row.error for row in rows) == 8
    assert (spec.folder / "workers.log").exists()


def test_jobs_carry_the_model_graph_and_the_sources(spec: BenchSpec) -> None:
    jobs, broken = plan_jobs(spec)
    assert not broken
    assert jobs[0].graph["name"] == "baseline"
    assert jobs[0].sources["dataset small"].startswith("session ")
    assert "head node_classifier" not in jobs[0].sources  # part of protgraph
    assert jobs[0].sources["protgraph"].startswith(protgraph.__version__)


def test_rows_are_stale_after_an_edit_of_code(spec: BenchSpec, tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "bench_run_plugin"
    package.mkdir()
    monkeypatch.delitem(sys.modules, "bench_run_plugin", raising=False)
    body = """from protgraph import GraphLayer
class Mine(GraphLayer):
    def forward(self, f):
        return {}
"""
    (package / "__init__.py").write_text(body)
    registry.layers.register("mine", importlib.import_module("bench_run_plugin").Mine)
    registry.models.register("uses_mine", ModelSpec("uses_mine", layers=["mine"]))
    keys = []
    for text in (body, body.replace("return {}", "return {'h': 1}")):
        (package / "__init__.py").write_text(text)
        code_digest.cache_clear()
        jobs, _ = plan_jobs(spec.replace(models=("good", "uses_mine"), baselines=()))
        keys.append({job.model: job.key for job in jobs})
    assert body != text
    assert keys[0]["good"] == keys[1]["good"]
    assert keys[0]["uses_mine"] != keys[1]["uses_mine"]


def test_rows_of_a_layer_without_source_code_are_always_stale(spec: BenchSpec) -> None:
    space: dict = {"__name__": "__main__", "GraphLayer": protgraph.GraphLayer}
    exec("class Typed(GraphLayer):\n    def forward(self, f): return {}", space)
    registry.layers.register("typed", space["Typed"])
    registry.models.register("uses_typed", ModelSpec("uses_typed", layers=["typed"]))
    spec = spec.replace(models=("good", "uses_typed"), baselines=())
    first, second = ({job.key for job in plan_jobs(spec)[0] if job.model == "uses_typed"} for _ in range(2))
    assert len(first) == len(second) == 4 and first.isdisjoint(second)


def test_an_invalid_training_option_is_an_error_before_any_run(spec: BenchSpec) -> None:
    with pytest.raises(OptionError, match="fit: .*'epoch'"):
        run_bench(spec.replace(fit={"epoch": 3}), train=TRAIN_REF)
    with pytest.raises(OptionError, match="fit.models.good: .*epochs"):
        run_bench(spec.replace(fit_models={"good": {"epochs": 0}}), train=TRAIN_REF)


@pytest.mark.slow
def test_the_report_writes_all_files_that_it_links(spec: BenchSpec) -> None:
    rows = run_bench(spec, train=TRAIN_REF)
    page = write_report(spec, rows)
    names = {path.name for path in spec.folder.iterdir()}
    figures = {f"{kind}_{task}.png" for kind in ("curves", "comparison") for task in spec.tasks}
    assert names >= {"rows.jsonl", "table.md", "table.csv", "report.html", "environment.json"} | figures
    text = page.read_text()
    assert "bad, first, seed 0: ValueError: bad model" in text
