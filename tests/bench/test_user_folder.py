"""Benchmarks on a folder of user files: labels, worker processes, resuming, and rows that changes make stale."""

from __future__ import annotations

import csv
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from protgraph.bench.job_plan import plan_jobs
from protgraph.bench.report import write_report
from protgraph.bench.rows import BenchJob
from protgraph.bench.run import run_bench
from protgraph.bench.spec import BenchSpec
from protgraph.errors import DatasetError, LabelError, UnknownNameError
from protgraph.structure import clean, load_structure

SMALL = ("1ajj", "1crn", "1vii", "2erl", "1fas", "1bx8", "1orc")
SPEC = """
name = "mine"
dataset = "my_structures"
{labels}
tasks = {tasks}
models = ["majority", "gcn"]
baselines = ["majority"]
seeds = [0]
jobs = 2
[fit]
epochs = 1
"""


@pytest.fixture
def folder(tmp_path: Path, structures_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of seven structures, and labels.csv with ``site`` (0 or 1) of each residue."""
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    found = tmp_path / "data" / "my_structures"
    found.mkdir(parents=True)
    rows = ["file,chain,res_id,ins_code,site"]
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", found)
        r = clean(load_structure(found / f"{name}.bcif"))
        keys = zip(r.chain, r.res_id, r.ins_code, np.arange(len(r)) % 3 == 0, strict=True)
        rows += [f"{name},{chain},{number},{code},{int(site)}" for chain, number, code, site in keys]
    (found.parent / "labels.csv").write_text("\n".join(rows) + "\n")
    return found


def spec_of(folder: Path, tasks: list[str], labels: str = "") -> BenchSpec:
    path = folder.parent / "spec.toml"
    path.write_text(SPEC.format(tasks=tasks, labels=f'labels = "{labels}"' if labels else ""))
    return BenchSpec.from_toml(path).replace(out=folder.parent / "runs")


def keys(spec: BenchSpec) -> set[str]:
    return {job.key for job in plan_jobs(spec)[0]}


@pytest.mark.slow
def test_a_folder_runs_in_worker_processes_and_resumes(folder, monkeypatch, tmp_path):
    spec = spec_of(folder, ["site", "inverse_folding"], "labels.csv")
    (folder.parent / "elsewhere").mkdir()
    monkeypatch.chdir(folder.parent / "elsewhere")  # paths are relative to the spec
    rows = run_bench(spec)
    assert [row.error for row in rows] == [""] * 4
    assert [(row.model, row.task, row.dataset) for row in rows] == [
        (model, task, "my_structures") for task in ("site", "inverse_folding") for model in ("majority", "gcn")
    ]
    assert rows[0].monitor == "auprc" and rows[2].monitor == "perplexity"
    assert all(set(row.metrics) == {"val", "test"} and row.failures == () for row in rows)
    assert run_bench(spec, train="no.such:function") == rows  # every row is finished


@pytest.mark.slow
def test_unusable_proteins_are_in_the_rows_and_the_report(folder):
    (folder / "broken.cif").write_text("no structure")
    shutil.copy(folder / "1crn.bcif", folder / "twin.bcif")
    spec = spec_of(folder, ["secondary_structure"])
    rows = run_bench(spec)
    assert [row.error for row in rows] == ["", ""]
    for row in rows:
        [failure] = row.failures
        assert (failure.source, failure.protein) == (str(folder / "broken.cif"), "broken")
        assert failure.error_type == "StructureFileError" and "broken.cif" in failure.message
    text = write_report(spec, rows).read_text()
    assert "train 6, val 1, test 1. Splits: random, seed 0" in text
    assert "2 of 8 proteins share a sequence" in text
    assert "broken: " in text and "(secondary_structure, 2 of 2 runs)" in text and "(all: failures.csv)" in text
    with open(spec.folder / "failures.csv", newline="") as file:
        [manifest] = csv.DictReader(file)
    assert list(manifest)[:4] == ["source", "protein", "error_type", "message"]
    assert (manifest["protein"], manifest["source"]) == ("broken", failure.source)
    write_report(spec, [replace(row, failures=()) for row in rows])
    assert not (spec.folder / "failures.csv").exists()


@pytest.mark.slow
def test_unusable_proteins_are_in_the_rows_of_sampling_models(folder):
    (folder / "broken.cif").write_text("no structure")
    (folder / "some.fasta").write_text(">seq\nMKTAYIAKQRQISFVK\n")
    (folder.parent / "splits.csv").write_text(
        "file,split\n1crn,train\n1ajj,train\n1vii,val\n2erl,test\nseq,test\nbroken.cif,test\n"
    )
    [row] = run_bench(spec_of(folder, ["inverse_folding"], "splits.csv").replace(models=("proteinmpnn",), baselines=()))
    assert row.error == "" and set(row.metrics) == {"val", "test"}
    assert sorted(failure.protein for failure in row.failures) == ["broken", "seq"]
    assert sum(map(sum, row.confusion["test"])) == 40  # residues of 2erl


@pytest.mark.parametrize("change", ["file", "labels", "splits"])
def test_rows_are_stale_after_a_change_of_files_or_labels(folder, change):
    before = keys(spec_of(folder, ["site"], "labels.csv"))
    table = folder.parent / "labels.csv"
    if change == "file":
        shutil.copy(folder / "1crn.bcif", folder / "1vii.bcif")
    elif change == "labels":
        table.write_text(table.read_text().replace("1crn,A,1,,1", "1crn,A,1,,0"))
    else:
        lines = table.read_text().splitlines()
        splits = dict(zip(SMALL, ["val", "test", *["train"] * 5], strict=True))
        table.write_text("\n".join([lines[0] + ",split", *(f"{row},{splits[row[:4]]}" for row in lines[1:])]))
    assert keys(spec_of(folder, ["site"], "labels.csv")) != before


@pytest.mark.parametrize("change", ["nothing", "path of the folder", "modification times"])
def test_rows_are_kept_if_the_content_is_unchanged(folder, change, tmp_path):
    before = keys(spec_of(folder, ["site"], "labels.csv"))
    if change == "path of the folder":
        folder.parent.rename(tmp_path / "moved")
        folder = tmp_path / "moved" / folder.name
    elif change == "modification times":
        for path in folder.iterdir():
            path.touch()
    assert keys(spec_of(folder, ["site"], "labels.csv")) == before


def test_an_added_file_changes_only_tasks_that_use_all_files(folder):
    labeled, derived = (keys(spec_of(folder, *task)) for task in ((["site"], "labels.csv"), (["contact"],)))
    shutil.copy(folder / "1crn.bcif", folder / "9crn.bcif")
    assert keys(spec_of(folder, ["site"], "labels.csv")) == labeled  # the table does not list the file
    assert keys(spec_of(folder, ["contact"])).isdisjoint(derived)


def test_files_that_changed_after_planning_are_an_error(folder):
    job = plan_jobs(spec_of(folder, ["site"], "labels.csv"))[0][0]
    copied = BenchJob.from_dict(asdict(job))
    assert copied.data().version == job.dataset_version
    assert Path(job.folder) == folder and Path(job.labels) == folder.parent / "labels.csv"
    (folder.parent / "labels.csv").write_text((folder.parent / "labels.csv").read_text().replace(",1\n", ",0\n", 1))
    with pytest.raises(DatasetError, match="my_structures"):
        copied.data()


def test_the_seed_of_a_run_does_not_change_the_split(folder):
    jobs = plan_jobs(spec_of(folder, ["contact"]).replace(seeds=(0, 1)))[0]
    assert len({job.dataset_version for job in jobs}) == 1 and len({job.key for job in jobs}) == 4


def test_errors_name_the_spec_and_the_key(folder):
    with pytest.raises(DatasetError, match=r"spec.toml: tasks: .*'site'"):
        plan_jobs(spec_of(folder, ["site"]))
    with pytest.raises(LabelError, match=r"spec.toml: tasks: .*data/nothing.csv'"):
        plan_jobs(spec_of(folder, ["site"], "nothing.csv"))
    with pytest.raises(DatasetError, match=r"spec.toml: .*site.*contact"):
        plan_jobs(spec_of(folder, ["contact"], "labels.csv"))
    with pytest.raises(UnknownNameError, match=r"spec.toml: dataset: .*your_structures'"):
        plan_jobs(spec_of(folder, ["contact"]).replace(dataset=str(folder.parent / "your_structures")))
    with pytest.raises(DatasetError, match="'pdb_core'"):
        plan_jobs(spec_of(folder, ["contact"], "labels.csv").replace(dataset="pdb_core"))
