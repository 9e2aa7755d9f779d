"""Inspection of datasets: the lines of ``protgraph data inspect``, and faults of tables and files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import protgraph as pg
from protgraph.data.datasets.card import SplitCount
from protgraph.errors import DatasetError, UnknownNameError
from protgraph.labels import inspect_dataset, load_dataset
from protgraph.structure import clean, load_structure

SMALL = ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8", "1fas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, structures_dir) -> Path:
    """Return seven structures, one of them in a subfolder, and a text file."""
    found = tmp_path_factory.mktemp("inspect") / "mine"
    (found / "below").mkdir(parents=True)
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", found / ("below" if name == "1fas" else ""))
    (found / "notes.txt").write_text("text")
    (found / ".hidden").mkdir()
    shutil.copy(structures_dir / "1crn.bcif", found / ".hidden")
    return found


def residue_table(folder: Path, path: Path, extra: str = "") -> Path:
    lengths = {}
    with path.open("w") as file:
        file.write("pdb,resnum,site\n")
        for source in sorted(folder.rglob("[0-9]*.bcif")):
            if source.parent.name == ".hidden":
                continue
            residues = clean(load_structure(source))
            lengths[source.stem] = len(residues)
            for number, code in zip(residues.res_id, residues.aatype, strict=True):
                file.write(f"{source.stem},{number},{int(code == 4)}\n")
        file.write(extra)
    return path


def test_counts_of_the_description_are_those_of_reading_all_files(folder, tmp_path):
    """Counts from fingerprints and table rows equal those of aligned labels (``Dataset.check``)."""
    data = load_dataset(folder, labels=residue_table(folder, tmp_path / "t.csv"), cache=tmp_path)
    assert dict(data.card.tasks["site"].counts) == data.check("site")
    described = data.describe()
    assert described.splits == {s: SplitCount(c.proteins, c.residues) for s, c in data.check("site").items()}
    assert described.left_out == {"notes.txt": "neither structure nor FASTA"}
    assert described.files == "7 files, 1 of them in subfolders"
    assert described.columns[0].classes == {
        "0": described.columns[0].labeled - sum(c.per_class[0] for c in data.check("site").values()),
        "1": sum(c.per_class[0] for c in data.check("site").values()),
    }
    assert "column 'resnum' is the res_id" in described.notes


def test_inspection_has_the_lines_of_the_dataset_that_is_trained_on(folder, tmp_path):
    table = residue_table(folder, tmp_path / "t.csv")
    data = load_dataset(folder, labels=table, cache=tmp_path, seed=3)
    found = inspect_dataset(folder, labels=table, cache=tmp_path, seed=3)
    assert str(found.description) == str(data.describe()) == str(found) and not found.has_faults


def test_every_absent_residue_and_file_is_listed_with_its_row(folder, tmp_path):
    absent = "".join(f"1crn,{n},0\n" for n in range(900, 920))
    table = residue_table(folder, tmp_path / "t.csv", absent)
    rows = len(table.read_text().splitlines())
    found = inspect_dataset(folder, labels=table, cache=tmp_path)
    assert found.absent_residues == tuple(f"1crn.bcif A:{n} (row {rows - 919 + n})" for n in range(900, 920))
    assert found.has_faults and f"1crn.bcif A:919 (row {rows})" in str(found)
    (tmp_path / "files.csv").write_text("file,x\n" + "".join(f"gone{i},{i}.5\n" for i in range(9)) + "1crn,3\n")
    found = inspect_dataset(folder, labels=tmp_path / "files.csv", cache=tmp_path)
    assert found.absent_files == tuple(f"'gone{i}' (row {i + 2})" for i in range(9))
    assert found.description.columns[0].range == (0.5, pytest.approx(4.35), 8.5)


def test_every_column_is_described_and_refused_ones_have_a_reason(folder, tmp_path):
    lines = "".join(f"{name},{i % 2},{7 + i / 2},note {i}\n" for i, name in enumerate(SMALL))
    (tmp_path / "t.csv").write_text("file,active,ph,remark\n" + lines)
    found = inspect_dataset(folder, labels=tmp_path / "t.csv", cache=tmp_path)
    assert list(found.description.tasks) == ["active", "ph"] and list(found.description.refused_columns) == ["remark"]
    assert "own text" in found.description.refused_columns["remark"] and not found.has_faults
    for task in ("active", "ph"):
        own = load_dataset(folder, labels=tmp_path / "t.csv", task=task, cache=tmp_path)
        assert found.description.tasks[task].counts == own.card.tasks[task].counts
        assert found.description.task_rules[task] == own.card.split_rule
    with pytest.raises(DatasetError, match="active, ph, remark"):  # as train: a table that no task uses
        inspect_dataset(folder, labels=tmp_path / "t.csv", task="secondary_structure", cache=tmp_path)
    with pytest.raises(UnknownNameError, match="'activ'.*'active'"):
        inspect_dataset(folder, labels=tmp_path / "t.csv", task="activ", cache=tmp_path)


def test_derived_labels_and_unusable_files_are_counted(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "more")
    (tmp_path / "more" / "broken.cif").write_text("no structure")
    found = inspect_dataset(tmp_path / "more", task="secondary_structure", cache=tmp_path)
    counts = found.description.tasks["secondary_structure"].counts
    assert sum(count.proteins for count in counts.values()) == len(SMALL)
    assert all(sum(count.per_class) == count.labeled > 0 for count in counts.values())
    assert [text.partition(":")[0] for text in found.unusable] == ["broken"] and found.has_faults
    assert found.description.proteins == len(SMALL) and "1 protein cannot be read" in found.description.notes[-1]
    found = inspect_dataset(tmp_path / "more", cache=tmp_path)
    assert sum(count.proteins for count in found.description.splits.values()) == len(SMALL)


def test_a_folder_without_table_a_store_and_a_registered_dataset_are_described(folder, tmp_path, run_cli):
    assert "7 proteins in 7 files" in str(inspect_dataset(folder, cache=tmp_path))
    assert run_cli("featurize", folder, "-o", tmp_path / "store", "-f", "dihedral").exit_code == 0
    assert "7 proteins in 7 files, 1 of them in subfolders" in str(inspect_dataset(tmp_path / "store", cache=tmp_path))
    result = run_cli("data", "inspect", "pdb_core", "--task", "interface")
    assert result.exit_code == 0 and "task interface: 1 binary label per residue" in result.output
    table = tmp_path / "t.csv"
    table.write_text("file,x\n" + "".join(f"{name},{i}.5\n" for i, name in enumerate(SMALL)) + "gone,1\n")
    result = run_cli("data", "inspect", folder, "--labels", table)
    assert result.exit_code == 1 and "1 absent file:\n  'gone' (row 9)" in result.output


@pytest.fixture
def run_cli():
    from typer.testing import CliRunner

    from protgraph.cli.app import app

    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_repr_of_datasets_has_tasks_and_splits(folder, tmp_path):
    assert "'pdb_core', tasks:" in repr(pg.load_dataset("pdb_core")) and len(repr(pg.load_dataset("pdb_core"))) < 300
    data = load_dataset(folder, task="inverse_folding", cache=tmp_path)
    assert repr(data) == "FolderDataset('mine', tasks: inverse_folding; proteins: train 5, val 1, test 1)"


def test_lists_of_files_are_datasets(folder, tmp_path):
    files = [folder / "1crn.bcif", str(folder / "below"), str(folder / "1[av]*.bcif")]
    data = load_dataset(files, task="inverse_folding", cache=tmp_path)
    assert sorted(e.id for e in data.examples("inverse_folding")) == ["1ajj", "1crn", "1fas", "1vii"]
    assert data.name == "mine"
    (tmp_path / "t.csv").write_text("file,x\n1crn,1.5\nbelow/1fas.bcif,2.5\n")
    data = load_dataset(files, labels=tmp_path / "t.csv", cache=tmp_path)
    assert [e.id for e in data.examples("x")] == ["1crn", "1fas"]
    one = load_dataset(str(folder / "1crn.bcif"), task="inverse_folding", cache=tmp_path)
    assert [e.id for e in one.examples("inverse_folding")] == ["1crn"]


@pytest.mark.parametrize(
    ("dataset", "error"),
    [
        ("", UnknownNameError),
        ([], UnknownNameError),
        (["a", ""], UnknownNameError),
        (3, DatasetError),
        ([3], DatasetError),
    ],
)
def test_other_dataset_arguments_are_typed_errors(dataset, error):
    with pytest.raises(error, match="dataset"):
        load_dataset(dataset, task="inverse_folding")


def test_files_of_one_name_in_subfolders_are_named_by_path(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "twice")
    shutil.copy(tmp_path / "twice" / "1crn.bcif", tmp_path / "twice" / "below" / "1crn.bcif")
    (tmp_path / "twice" / "other").mkdir()
    shutil.copy(tmp_path / "twice" / "1ajj.bcif", tmp_path / "twice" / "other" / "1crn.bcif")
    (tmp_path / "twice" / "1crn.bcif").unlink()
    (tmp_path / "t.csv").write_text("file,x\n1crn,1.5\n1ajj,2.5\n")
    with pytest.raises(pg.ProtgraphError, match="row 2.*'1crn'.*below/1crn.bcif, other/1crn.bcif"):
        load_dataset(tmp_path / "twice", labels=tmp_path / "t.csv", cache=tmp_path)
    (tmp_path / "t.csv").write_text("file,x\nbelow/1crn,1.5\nother/1crn.bcif,2.5\n1AJJ,3.5\n")
    data = load_dataset(tmp_path / "twice", labels=tmp_path / "t.csv", cache=tmp_path)
    assert [e.id for e in data.examples("x")] == ["below/1crn", "other/1crn", "1ajj"]
