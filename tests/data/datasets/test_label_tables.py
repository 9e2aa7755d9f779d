"""Label tables of first users: each is understood as stated, or refused with its data; never guessed in silence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import protgraph.errors
from protgraph.data.datasets.column_interpretation import interpret_column
from protgraph.data.datasets.label_table import read_label_table
from protgraph.errors import LabelError, MissingExtraError, ProtgraphError
from protgraph.train import load_dataset
from tests.first_use.label_tables import FILES, LABEL_TABLES, TWO_CHAINS, LabelTableCase


@pytest.fixture(scope="module")
def structures(structures_dir, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "structures"
    folder.mkdir()
    for name in (*FILES, TWO_CHAINS):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    return folder


@pytest.mark.parametrize("case", LABEL_TABLES, ids=lambda case: case.name)
def test_label_table_is_understood_or_refused(structures, tmp_path, case: LabelTableCase):
    path = tmp_path / f"labels{case.suffix}"
    path.write_bytes(case.content)
    options = {"labels": path, "cache": structures.parent / "cache", **case.options}
    if case.is_refused:
        with pytest.raises(getattr(protgraph.errors, case.outcome)) as error:
            load_dataset(structures, **options)
        text = str(error.value)
        assert str(path) in text or case.name in ("unknown kind", "no label column"), text
        assert text.count("\n") <= 2 and len(re.findall(r"[.?] [A-Z]", text)) <= 4, text
    else:
        data = load_dataset(structures, **options)
        (task,) = data.tasks()
        assert data.target(task).kind == case.outcome
        text = str(data.describe())
    missing = [part for part in case.parts if part not in text]
    assert not missing, f"{missing} not in {text}"


def test_names_of_cases_are_unique():
    assert len({case.name for case in LABEL_TABLES}) == len(LABEL_TABLES) >= 100


VALUES = ["1.5", "", "2.5", "4", "5.5", "6.5", "7"]


def workbook(path: Path, sheets: dict[str, list[list[object]]], number_format: str = "General") -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in sheet["B"] if rows else ():
            cell.number_format = number_format
    book.save(path)
    return path


def values_of(table, name: str = "x", **options) -> list[float]:
    return interpret_column(read_label_table(table), name, **options).values.tolist()


@pytest.fixture
def formats(tmp_path) -> dict[str, object]:
    """Return the same table in every format."""
    import pandas
    import pyarrow
    import pyarrow.parquet

    numbers = [float(v) if v else None for v in VALUES]
    frame = pandas.DataFrame({"file": FILES, "x": numbers})
    arrow = pyarrow.table({"file": list(FILES), "x": numbers})
    pyarrow.parquet.write_table(arrow, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("file,x\n" + "".join(f"{f},{v}\n" for f, v in zip(FILES, VALUES, strict=True)))
    rows = [["file", "x"], *([f, v] for f, v in zip(FILES, numbers, strict=True))]
    indexed = frame.set_index("file")
    return {
        "csv": tmp_path / "t.csv",
        "xlsx": workbook(tmp_path / "t.xlsx", {"Sheet1": rows, "empty": []}),
        "parquet": tmp_path / "t.parquet",
        "pandas": frame,
        "index": indexed,
        "pyarrow": arrow,
    }


@pytest.mark.parametrize("name", ["csv", "xlsx", "parquet", "pandas", "index", "pyarrow"])
def test_formats_have_the_same_labels(formats, structures, name):
    np.testing.assert_array_equal(values_of(formats[name]), [1.5, np.nan, 2.5, 4, 5.5, 6.5, 7])
    data = load_dataset(structures, labels=formats[name], task="x", cache=structures.parent / "cache")
    assert data.target("x").kind == "regression" and len(data.examples("x")) == len(FILES) - 1
    assert len(data.version) == 12


def test_integers_and_booleans_of_data_frames_are_not_floats():
    """pandas stores integers beside NaN as floats: the classes are 1 and 2, not 1.0 and 2.0."""
    import pandas

    frame = pandas.DataFrame({"file": FILES[:5], "x": [1, 2, None, 1, 2], "b": [True, False, None, True, False]})
    assert interpret_column(read_label_table(frame), "x", kind="classification").classes == {"1": 2, "2": 2}
    assert interpret_column(read_label_table(frame), "b").classes == {"False": 2, "True": 2}
    with pytest.raises(LabelError, match="row 1 is 'high'"):
        interpret_column(read_label_table(pandas.DataFrame({"file": FILES[:2], "x": [1.5, "high"]})), "x")


def test_sheets_are_named_and_percent_cells_keep_their_unit(tmp_path):
    rows = [["file", "x"], ["1crn", 0.05], ["1ajj", 0.125]]
    path = workbook(tmp_path / "t.xlsx", {"first": rows, "second": [["file", "x"], ["1crn", 1], ["1ajj", 2.5]]}, "0.0%")
    with pytest.raises(LabelError, match="first, second"):
        read_label_table(path)
    with pytest.raises(LabelError, match="'secnd'.*'second'"):
        read_label_table(f"{path}#secnd")
    column = interpret_column(read_label_table(f"{path}#first"), "x")
    assert (column.values.tolist(), column.unit) == ([5, 12.5], "%")


def test_formula_without_a_value_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {"Sheet1": [["file", "x"], ["1crn", 1.5], ["1ajj", "=1+1"]]})
    with pytest.raises(LabelError, match="B3"):
        read_label_table(path)


def test_workbooks_without_openpyxl_name_the_extra(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", {"Sheet1": [["file", "x"], ["1crn", 1.5]]})
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"\[xlsx\]"):
        read_label_table(path)


@pytest.mark.parametrize("labels", [3, ["a.csv"], {"file": ["1crn"]}, object()])
def test_other_objects_are_no_tables(labels, structures):
    with pytest.raises(ProtgraphError, match=type(labels).__name__):
        load_dataset(structures, labels=labels, task="x", cache=structures.parent / "cache")


def test_suffixes_in_capitals_are_not_part_of_a_name(structures_dir, tmp_path):
    import gzip

    (tmp_path / "in").mkdir()
    content = (structures_dir / "1crn.bcif").read_bytes()
    (tmp_path / "in" / "1crn.BCIF.GZ").write_bytes(gzip.compress(content))
    data = load_dataset(tmp_path / "in", task="inverse_folding", cache=tmp_path)
    (example,) = data.examples("inverse_folding")
    assert example.id == "1crn" and data.read(example).name == "1crn"
