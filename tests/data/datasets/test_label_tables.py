"""Label tables of first users: each is understood as stated, or refused with its data; never guessed in silence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import protgraph.errors
from protgraph.data.datasets.label_column import interpret_column
from protgraph.data.datasets.label_table import read_label_table
from protgraph.errors import LabelError, MissingExtraError, ProtgraphError
from protgraph.labels import inspect_dataset, load_dataset
from protgraph.structure import clean, load_structure
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
    assert interpret_column(read_label_table(frame), "b").values[[0, 1, 3]].tolist() == [1, 0, 1]
    with pytest.raises(LabelError, match="row 1 is 'high'"):
        interpret_column(read_label_table(pandas.DataFrame({"file": FILES[:2], "x": [1.5, "high"]})), "x")


@pytest.mark.parametrize("backend", ["nullable", "pyarrow", "object", "category"])
def test_missing_values_of_every_pandas_type_are_unknown(backend):
    import pandas

    numbers, truth = pandas.Series([3, None, 7, 9]), pandas.Series([True, None, False, True], dtype=object)
    texts = pandas.Series(["open", None, "shut", "open"])
    if backend == "nullable":
        columns = numbers.astype("Int64"), truth.astype("boolean"), texts.astype("string")
    elif backend == "pyarrow":
        columns = numbers.astype("int64[pyarrow]"), truth.astype("bool[pyarrow]"), texts.astype("string[pyarrow]")
    elif backend == "category":
        columns = numbers.astype("category"), truth.astype("category"), texts.astype("category")
    else:
        columns = tuple(column.astype(object).where(column.notna(), pandas.NA) for column in (numbers, truth, texts))
    frame = pandas.DataFrame(dict(zip(("x", "site", "state"), columns, strict=True)))
    frame.insert(0, "file", pandas.Series(FILES[:4], dtype="string"))
    table = read_label_table(frame)
    np.testing.assert_array_equal(interpret_column(table, "x").values, [3, np.nan, 7, 9])
    np.testing.assert_array_equal(interpret_column(table, "site").values, [1, np.nan, 0, 1])
    state = interpret_column(table, "state")
    assert (state.values.tolist(), list(state.classes), dict(state.unknown)) == (
        [0, -1, 1, 0],
        ["open", "shut"],
        {"": 1},
    )


def test_missing_keys_of_pandas_are_blank(structures):
    import pandas

    frame = pandas.DataFrame({"file": ["1crn"] * 4, "res_id": pandas.array([1, 2, 3, 4], "Int64"), "x": [1, 0, 1, 0]})
    frame["chain"] = pandas.array([pandas.NA, "A", pandas.NA, "A"], "string")
    frame["ins_code"] = pandas.array([pandas.NA] * 4, "string")
    data = load_dataset(structures, labels=frame, task="x", cache=structures.parent / "cache")
    (example,) = data.examples("x")
    assert data.labels("x", example).ids == ["A:1", "A:2", "A:3", "A:4"]


def test_sheets_are_named_and_percent_cells_are_the_stored_numbers(tmp_path):
    rows = [["file", "x"], ["1crn", 0.05], ["1ajj", 0.125]]
    path = workbook(tmp_path / "t.xlsx", {"first": rows, "second": [["file", "x"], ["1crn", 1], ["1ajj", 2.5]]}, "0.0%")
    with pytest.raises(LabelError, match="first, second"):
        read_label_table(path)
    with pytest.raises(LabelError, match="'secnd'.*'second'"):
        read_label_table(f"{path}#secnd")
    assert values_of(f"{path}#first") == [0.05, 0.125]


def strings_of(structures, write):
    """Return a table whose cells are written from the sequence of each protein."""
    lines = [f'{name},"{write(read_sequence(structures / f"{name}.bcif"))}"' for name in FILES]
    return "\n".join(["file,site", *lines]) + "\n"


def read_sequence(path):
    return clean(load_structure(path)).sequence


def charged(sequence):
    return ["1" if letter in "DEKR" else "0" for letter in sequence]


LABEL_STRINGS = {
    "digits": lambda s: "".join(charged(s)),
    "digits that begin with 1": lambda s: "1" + "".join(charged(s))[1:],
    "letters": lambda s: "".join("HE"[int(c)] for c in charged(s)),
    "spaces": lambda s: " ".join(charged(s)),
    "blocks of ten": lambda s: " ".join("".join(charged(s))[i : i + 10] for i in range(0, len(s), 10)),
    "commas": lambda s: ",".join(charged(s)),
    "list": lambda s: f"[{', '.join(charged(s))}]",
    "numbers": lambda s: " ".join(f"{ord(letter) / 7:.2f}" for letter in s),
    "quoted": lambda s: f"'{''.join(charged(s))}'",
    "unknown -": lambda s: "--" + "".join(charged(s))[2:],
    "unknown .": lambda s: ".." + "".join(charged(s))[2:-1] + ".",
    "unknown ?": lambda s: "??" + "".join(charged(s))[2:],
    "whole sequence": lambda s: "00" + "".join(charged(s)) + "111",
    "letters of the whole sequence": lambda s: "CC" + "".join("HE"[int(c)] for c in charged(s)) + "C",
    "the sequence": lambda s: s,
}


@pytest.mark.parametrize("kind", [None, "classification", "regression", "multilabel"])
@pytest.mark.parametrize("form", LABEL_STRINGS)
def test_a_label_string_per_protein_is_refused(structures, tmp_path, form, kind):
    (tmp_path / "labels.csv").write_text(strings_of(structures, LABEL_STRINGS[form]))
    options = {"labels": tmp_path / "labels.csv", "task": "site", "kind": kind, "cache": structures.parent / "cache"}
    with pytest.raises(LabelError) as error:
        load_dataset(structures, **options)
    assert "residue" in str(error.value) and "labels.csv" in str(error.value)


NO_LABEL_STRINGS = {
    "numbers of as many characters": (lambda s: f"{len(s) / 700:.{len(s)}f}"[: len(s)], "regression"),
    "integers": (lambda s: str(len(s) * 1000003), "regression"),
    "names": (lambda s: "membrane protein" if len(s) % 2 else "soluble protein of the cytosol", "classification"),
}


@pytest.mark.parametrize("form", NO_LABEL_STRINGS)
def test_other_cells_are_no_label_strings(structures, tmp_path, form):
    write, kind = NO_LABEL_STRINGS[form]
    (tmp_path / "labels.csv").write_text(strings_of(structures, write))
    data = load_dataset(structures, labels=tmp_path / "labels.csv", task="site", cache=structures.parent / "cache")
    assert data.target("site").kind == kind


def test_inspection_refuses_a_column_of_label_strings_and_describes_the_others(structures, tmp_path):
    lines = strings_of(structures, LABEL_STRINGS["digits"]).splitlines()
    rows = [f"{line},{i}.5" for i, line in enumerate(lines[1:])]
    (tmp_path / "labels.csv").write_text("\n".join([lines[0] + ",ph", *rows]))
    found = inspect_dataset(structures, labels=tmp_path / "labels.csv", cache=structures.parent / "cache")
    assert [column.name for column in found.description.columns] == ["ph"]
    assert "residue" in found.description.refused_columns["site"]


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
