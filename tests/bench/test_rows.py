"""Rows file: round trip, unfinished lines of a killed run, and keys of finished runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from protgraph.bench.rows import BenchJob, BenchRow, append_row, finished_rows, read_rows
from protgraph.errors import OptionError

JOB = BenchJob("gcn", "interface", "small", 1, {"name": "gcn"}, {"epochs": 3}, "1", sources={"layer gcn": "x 1"})


def test_rows_round_trip_through_the_file(tmp_path: Path, rows: list[BenchRow]) -> None:
    for row in rows:
        append_row(tmp_path / "new" / "rows.jsonl", row)
    assert list(read_rows(tmp_path / "new" / "rows.jsonl").values()) == rows


def test_rows_are_strict_json_and_nan_is_restored(tmp_path: Path, rows: list[BenchRow]) -> None:
    row = replace(rows[0], metrics={"test": {"mcc": math.nan}}, seconds=math.inf)
    append_row(tmp_path / "rows.jsonl", row)
    assert json.loads((tmp_path / "rows.jsonl").read_text(), parse_constant=pytest.fail)["seconds"] is None
    back = read_rows(tmp_path / "rows.jsonl")[row.key]
    assert math.isnan(back.metrics["test"]["mcc"])
    assert math.isnan(back.seconds)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_an_unfinished_line_loses_only_its_own_row(tmp_path: Path, rows: list[BenchRow], cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, rows[0])
    append_row(path, rows[1])
    path.write_bytes(path.read_bytes()[:-cut])
    append_row(path, rows[2])
    kept = [rows[0], rows[1], rows[2]] if cut == 1 else [rows[0], rows[2]]  # complete without its line break
    assert list(read_rows(path).values()) == kept


def test_the_newest_row_of_a_key_is_returned(tmp_path: Path, rows: list[BenchRow]) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, BenchRow.failed(JOB, "ValueError: x"))
    append_row(path, rows[0])
    append_row(path, replace(rows[1], key=JOB.key))
    assert [row.error for row in read_rows(path).values()] == ["", ""]


def test_finished_rows_have_no_error_and_all_files_of_predictions(tmp_path: Path, rows: list[BenchRow]) -> None:
    path = tmp_path / "rows.jsonl"
    (tmp_path / "predictions.npz").touch()
    complete = replace(rows[0], predictions={"test": "predictions.npz"})
    append_row(path, complete)
    append_row(path, replace(rows[1], predictions={"test": "absent.npz"}))
    append_row(path, BenchRow.failed(JOB, "ValueError: x"))
    assert finished_rows(path) == {complete.key: complete}


def test_rows_of_another_layout_are_skipped(tmp_path: Path, rows: list[BenchRow]) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, rows[0])
    data = rows[1].to_dict()
    for other in ({**data, "floor": 1}, {**data, "seed": "first"}, {"key": "a"}, ["key"]):
        with path.open("a") as file:
            file.write(json.dumps(other) + "\n")
    assert list(read_rows(path).values()) == [rows[0]]


@pytest.mark.parametrize(
    ("change", "part"), [({"seed": "first"}, "seed = 'first'"), ({"metrics": {"val": 3}}, "metrics.val = 3")]
)
def test_a_wrong_value_is_reported_with_its_path(rows: list[BenchRow], change: dict, part: str) -> None:
    with pytest.raises(OptionError) as caught:
        BenchRow.from_dict(rows[0].to_dict() | change)
    assert part in str(caught.value)


def test_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "rows.jsonl") == {}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gat"},
        {"task": "b_factor"},
        {"seed": 2},
        {"graph": {"name": "gcn", "layers": ["gcn"]}},
        {"config": {"epochs": 4}},
        {"dataset_version": "2"},
        {"sources": {"layer gcn": "x 2"}},
    ],
)
def test_key_changes_with_everything_that_determines_the_numbers(change: dict) -> None:
    assert replace(JOB, **change).key != JOB.key


def test_key_does_not_depend_on_the_order_of_options() -> None:
    assert replace(JOB, config={"a": 1, "b": 2}).key == replace(JOB, config={"b": 2, "a": 1}).key
