"""A dataset that is tested on its own splits and trained on another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from protgraph.data.datasets.dataset import resplit
from protgraph.errors import DatasetError
from protgraph.labels import load_dataset
from protgraph.labels.evaluation_dataset import train_on_other

TASK = "secondary_structure"


def folder_dataset(folder: Path, structures: Path, splits: dict[str, str]) -> pg.Dataset:
    (folder / "files").mkdir(parents=True)
    for name in splits:
        shutil.copy(structures / f"{name}.bcif", folder / "files")
    table = ["file,split", *(f"{name}.bcif,{split}" for name, split in splits.items())]
    (folder / "splits.csv").write_text("\n".join(table) + "\n")
    return load_dataset(folder / "files", labels=folder / "splits.csv", task=TASK)


def only_test(base: pg.Dataset, task: str) -> pg.Dataset:
    names = [example.id for example in base.examples(task, "test")]
    return resplit(base, task, dict.fromkeys(names, "test"), "a test split")


def test_training_proteins_are_those_of_the_other_dataset_without_homologs(tmp_path, structures_dir):
    tested = folder_dataset(tmp_path / "a", structures_dir, {"1ubi": "test", "1bpi": "test", "1crn": "train"})
    others = {"1ubq": "train", "2erl": "train", "5pti": "val", "1a8o": "val", "1fas": "test"}
    other = folder_dataset(tmp_path / "b", structures_dir, others)
    found = train_on_other(only_test(tested, TASK), TASK, other, TASK, cache=tmp_path)
    splits = {example.id.split(":")[-1].split(".")[0]: example.split for example in found.examples(TASK)}
    assert splits == {"2erl": "train", "1a8o": "val", "1ubi": "test", "1bpi": "test"}
    assert found.splits(TASK) == ["train", "val", "test"]
    assert "1 of 2 proteins of train, 1 of 2 of val" in found.card.split_rule
    assert found.version != tested.version
    with pytest.raises(DatasetError, match="train"):
        train_on_other(tested, TASK, other, TASK, cache=tmp_path)


@pytest.mark.slow
def test_labels_and_links_are_those_of_the_own_dataset(tmp_path):
    base = pg.load_dataset("pdb_core")
    tested = only_test(base, "ligand_binding")
    found = train_on_other(tested, "ligand_binding", base, "interface", cache=tmp_path)
    trained, own = found.examples("ligand_binding", "train")[0], found.examples("ligand_binding", "test")[0]
    theirs = next(e for e in base.examples("interface", "train") if trained.id == f"pdb_core:{e.id}")
    expected = base.labels("interface", theirs).values
    np.testing.assert_array_equal(found.labels("ligand_binding", trained).values, expected)
    assert found.links(trained) == base.links(theirs)
    expected = base.labels("ligand_binding", own).values
    np.testing.assert_array_equal(found.labels("ligand_binding", own).values, expected)


@pytest.mark.slow
def test_jobs_of_a_spec_train_on_the_other_dataset(tmp_path, monkeypatch):
    from protgraph.bench import BenchSpec
    from protgraph.bench.job_plan import plan_jobs
    from protgraph.bench.run import train_job

    base = pg.load_dataset("pdb_core")
    tested = only_test(base, "ligand_binding")
    monkeypatch.setattr("protgraph.labels.load_dataset", lambda *a, **k: tested)
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    plain = {
        "name": "transfer",
        "tasks": ["ligand_binding"],
        "models": ["majority"],
        "seeds": [0],
        "out": str(tmp_path),
    }
    plain |= {"dataset": "pdb_core", "fit": {"epochs": 1}}
    plain |= {"train_on": {"ligand_binding": {"dataset": "pdb_core", "task": "interface"}}}
    spec = BenchSpec.from_dict(plain)
    assert BenchSpec.from_dict(spec.to_dict()) == spec
    (job,) = plan_jobs(spec)[0]
    assert job.data().splits("ligand_binding") == ["train", "val", "test"]
    assert job.dataset_version == job.data().version != tested.version
    row = train_job(job)
    assert set(row.metrics) == {"val", "test"}
    assert row.test_proteins == len(tested.examples("ligand_binding"))


def test_an_unknown_task_is_refused():
    from protgraph.bench import BenchSpec

    other = {"dataset": "pdb_core", "task": "interface"}
    with pytest.raises(pg.errors.UnknownNameError, match="train_on"):
        BenchSpec.from_dict(
            {"name": "x", "dataset": "pdb_core", "tasks": ["interface"], "models": ["gcn"], "train_on": {"site": other}}
        )
