"""Proteins without a known label: in no random split or fold, named; splits without a label are faults."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import protgraph as pg
from protgraph.cli.app import app
from protgraph.data.datasets.folds import assign_folds, fold_datasets
from protgraph.errors import AbsentFilesError, DatasetError, LabelError, OptionError
from protgraph.featurize import FeaturePlan, iter_graphs
from protgraph.labels import inspect_dataset, load_dataset
from tests.first_use.label_tables import FILES

KINDS = {"regression": "7.5 6.25 8 5.5", "multilabel": "0 1 1 0", "classification": "a b b a"}


@pytest.fixture(scope="module")
def structures(structures_dir, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unlabeled") / "mine"
    folder.mkdir()
    for name in FILES:
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    return folder


def table(path: Path, cells: list[str], splits: list[str] | None = None) -> Path:
    rows = [",".join((f, v, *s)) for f, v, s in zip(FILES, cells, zip(splits) if splits else [()] * 7, strict=False)]
    path.write_text("\n".join([f"file,x{',split' if splits else ''}", *rows]) + "\n")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_unlabeled_proteins_are_in_no_random_split_or_fold(structures, tmp_path, kind):
    path = table(tmp_path / "t.csv", ["", *KINDS[kind].split(), "", ""])
    for seed in range(4):
        data = load_dataset(structures, labels=path, seed=seed, cache=tmp_path)
        assert data.target("x").kind == kind
        assert sorted(e.id for e in data.examples("x")) == sorted(FILES[1:5])
        assert all(count.labeled == count.proteins > 0 for count in data.card.tasks["x"].counts.values())
    note = next(note for note in data.notes if "no label" in note)
    assert "3 of 7" in note and all(name in note for name in (FILES[0], *FILES[5:]))
    found = inspect_dataset(structures, labels=path, cache=tmp_path)
    assert not found.has_faults and found.description.proteins == 7 and note in str(found)


def test_unlabeled_proteins_of_given_splits_are_in_no_fold(structures, tmp_path):
    path = table(tmp_path / "t.csv", ["", "7.5", "6", "5.5", "8.5", "", "9"], ["train"] * 5 + ["val", "test"])
    data = load_dataset(structures, labels=path, cache=tmp_path)
    assert len(data.examples("x")) == 7
    assignment = assign_folds(data, "x", 4)
    assert assignment.ids == FILES[1:5] + FILES[6:] and FILES[0] in assignment.rule
    for part in fold_datasets(data, "x", assignment):
        assert {e.id for e in part.examples("x")} == set(assignment.ids)
        assert sum(count.proteins for count in part.card.splits.values()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_given_split_without_labels_is_a_fault(structures, tmp_path, kind):
    cells = KINDS[kind].split()
    path = table(tmp_path / "t.csv", [*cells, cells[0], "", ""], ["train"] * 5 + ["val", "test"])
    found = inspect_dataset(structures, labels=path, cache=tmp_path)
    assert found.has_faults and found.unlabeled_splits == ("val of task 'x'", "test of task 'x'")
    result = CliRunner().invoke(app, ["data", "inspect", str(structures), "--labels", str(path)])
    assert result.exit_code == 1 and "val of task 'x'" in result.output
    data = load_dataset(structures, labels=path, cache=tmp_path)
    with pytest.raises(DatasetError, match="'val'.*1 protein without a known label"):
        pg.fit("gcn", data, "x", config=pg.FitConfig(epochs=1), cache=tmp_path)


@pytest.mark.slow
def test_numbers_with_blank_cells_are_trained_and_cross_validated(structures, tmp_path):
    path = table(tmp_path / "t.csv", ["7.5", "", "6", "5.5", "", "8.5", "9"])
    data = load_dataset(structures, labels=path, cache=tmp_path)
    config = pg.FitConfig(epochs=1)
    assert math.isfinite(pg.fit("gcn", data, "x", config=config, cache=tmp_path).metrics["test"]["rmse"])
    result = pg.train.cross_validate("gcn", data, "x", folds=3, config=config, cache=tmp_path)
    assert math.isfinite(result.pooled["rmse"]) and len(result.predictions) == 5


def test_names_of_splits_are_understood_and_printed(structures, tmp_path):
    names = ["Train", "training", "train", "validation", "TEST", "far", "dev"]
    path = table(tmp_path / "t.csv", [f"{i}.5" for i in range(7)], names)
    data = load_dataset(structures, labels=path, cache=tmp_path)
    assert {e.id: e.split for e in data.examples("x")} == dict(
        zip(FILES, ["train", "train", "train", "val", "test", "far", "val"], strict=True)
    )
    text = str(data.describe())
    for name, split in (("Train", "train"), ("validation", "val"), ("TEST", "test"), ("dev", "val")):
        assert f"split {name!r} is {split}" in text
    assert "further test sets, not trained on: 'far'" in text


def test_present_files_are_described_beside_absent_ones(structures, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("file,x\n1abc,9.5\n" + "".join(f"{name},{i}.5\n" for i, name in enumerate(FILES)))
    for task in (None, "x"):
        found = inspect_dataset(structures, labels=path, task=task, cache=tmp_path)
        assert found.absent_files == ("'1abc' (row 2)",) and found.has_faults
        assert sum(count.proteins for count in found.description.tasks["x"].counts.values()) == 7
        assert [column.labeled for column in found.description.columns] == [8]


def test_chains_in_another_case_are_named(structures, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("file,chain,res_id,x\n1crn,a,1,0.5\n1crn,a,2,1.5\n")
    with pytest.raises(LabelError, match=r"row 2: no chain 'a' in 1crn.bcif; chains: A\."):
        load_dataset(structures, labels=path, cache=tmp_path)


def test_lists_and_tables_are_named_as_such(structures, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"file": FILES, "x": range(7)})
    files = [structures / f"{name}.bcif" for name in FILES[:3]]
    with pytest.raises(AbsentFilesError, match="not in the list of 3 files") as error:
        load_dataset(files, labels=frame, cache=tmp_path)
    assert list(error.value.rows) == list(FILES[3:])
    with pytest.raises(OptionError, match="DataFrame is a table"):
        list(iter_graphs(frame, FeaturePlan([])))


def test_rare_classes_are_noted(structures, tmp_path):
    path = table(tmp_path / "t.csv", ["a", "a", "a", "b", "b", "b", "c"])
    assert "x: classes with fewer than 3 rows: c 1" in load_dataset(structures, labels=path, cache=tmp_path).notes
